drop index calls_restored_idx;
