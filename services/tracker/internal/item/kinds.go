package item

// Kinds answers every kind of change that history has, of items and then of what is beside them.
func Kinds() []string {
	return []string{
		"created", "imported", "status", "assignee", "fields", "collaborators", "watchers", "tags", "relations", "routed", "moved", "reparented", "checklist",
		"comment", "claimed", "released", "placed", "removed", "restored", "purged",
		"prioritised", "project_updated", "catalogue_updated", "view_saved", "file_written", "file_removed",
	}
}
