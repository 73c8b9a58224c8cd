drop table outbox, operations, outbound_lanes, outbound, deliveries, webhooks;
