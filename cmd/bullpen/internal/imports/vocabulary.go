package imports

// vocabulary is what words of other trackers mean here.
type vocabulary struct {
	statuses, priorities, types map[string]string
	// abandoned are resolutions that finish without doing.
	abandoned []string
}

func newVocabulary() vocabulary {
	return vocabulary{
		statuses: map[string]string{
			"": "todo", "to do": "todo", "todo": "todo", "open": "todo", "new": "todo", "backlog": "todo", "reopened": "todo", "triage": "todo", "planned": "todo",
			"selected for development": "todo", "ready": "todo", "ready for development": "todo", "on hold": "todo", "blocked": "todo", "unstarted": "todo",
			"in progress": "in_progress", "started": "in_progress", "in development": "in_progress", "doing": "in_progress",
			"in review": "in_review", "code review": "in_review", "patch available": "in_review", "review": "in_review", "in qa": "in_review", "qa": "in_review",
			"testing": "in_review", "ready for qa": "in_review", "ready for review": "in_review", "waiting for review": "in_review",
			"done": "done", "resolved": "done", "fixed": "done", "completed": "done", "released": "done", "closed": "closed",
			"canceled": "cancelled", "cancelled": "cancelled", "duplicate": "cancelled", "won't do": "cancelled", "won't fix": "cancelled", "rejected": "cancelled",
			"declined": "cancelled", "abandoned": "cancelled",
		},
		priorities: map[string]string{
			"highest": "urgent", "blocker": "urgent", "immediate": "urgent", "showstopper": "urgent", "critical": "urgent", "urgent": "urgent", "p0": "urgent", "high": "high", "major": "high", "p1": "high",
			"medium": "normal", "normal": "normal", "p2": "normal", "low": "low", "minor": "low", "p3": "low", "lowest": "low", "trivial": "low", "p4": "low",
			"": "none", "none": "none", "no priority": "none", "not a priority": "none", "undefined": "none", "unprioritized": "none", "unknown": "none", "not set": "none", "unset": "none",
		},
		types: map[string]string{
			"task": "task", "sub-task": "task", "subtask": "task", "technical task": "task", "bug": "bug", "defect": "bug", "epic": "epic", "initiative": "epic",
			"story": "story", "user story": "story", "new feature": "story", "feature": "story", "feature request": "story", "change request": "story", "improvement": "story", "enhancement": "story", "wish": "story",
			"spike": "spike", "research": "spike", "chore": "chore", "dependency upgrade": "chore", "documentation": "chore", "test": "chore",
			"milestone": "milestone", "": "task",
		},
		abandoned: []string{
			"won't do", "won't fix", "duplicate", "cannot reproduce", "not a problem", "not a bug", "invalid", "incomplete", "declined", "rejected", "abandoned",
			"obsolete", "not planned", "wont fix", "won’t do", "won’t fix", "later", "auto closed", "information provided", "works as designed", "as designed", "by design", "withdrawn", "won't proceed",
			"works for me", "not_planned",
		},
	}
}
