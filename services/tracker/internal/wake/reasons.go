package wake

// Reasons answers every reason, the strongest first.
func Reasons() []string {
	return []string{
		Asked, Answered, Mention, Blocking, Unblocked, Prioritised, Assignee, Unassigned, Reporter, Thread, RoutedTo, ParentAssignee,
		ChecklistStep, Collaborator, Watcher, Unwatched, Purged, LeadFallback,
	}
}
