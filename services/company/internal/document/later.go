package document

// This file and schedules.go read the blocks that the document has and this build does not act on. They are checked like
// all others, so that a mistake in one is found today, and refused unless they are switched off: a block that is off may
// keep its settings.

const most = 1 << 30

// later refuses a block that was given and is not switched off.
func (r *reader) later(at place, on bool, sentence string) {
	if on {
		r.add(at, KindUnsupported, "%s", sentence)
	}
}

func (r *reader) companyLater(o *object) {
	r.budget(o.object("token_budget"))
	rate := o.number("notification_rate_limit", 0, 0, 1000)
	r.later(rate.at, rate.v > 0, "this build drops no notification; say 0 or leave it out")
	r.learning(o.object("learning"))
	r.scheduling(o.object("scheduling"))

	policy := o.object("budget_policy")
	near := policy.choice("on_near", "none", "none", "degrade")
	r.later(near.at, near.v == "degrade", "this build has no token budgets to come near to; say `none` or leave it out")
	policy.done()

	channels := o.object("channels")
	fallback := channels.text("default")
	r.later(fallback.at, fallback.v != "", "this build answers where it was asked and nowhere else; leave it out")
	channels.done()

	signals := o.object("signals")
	beats := signals.list("heartbeats")
	r.later(under(signals.at, "heartbeats"), len(beats) > 0, "this build has no heartbeats; leave the list empty")
	signals.done()
	r.builtinTools(o.object("builtin_tools"))
}

// budget reads ceilings of tokens by window.
func (r *reader) budget(o *object) {
	for _, window := range []string{"day", "week", "month"} {
		o.number(window, 0, 1, most)
	}
	r.later(o.at, len(o.order) > 0, "this build counts no token budgets, and a ceiling that nobody holds is worse than none; leave the block out")
	o.done()
}

func (r *reader) providersLater(o *object) {
	embeddings := o.object("embeddings")
	if embeddings.given {
		embeddings.required("type")
		embeddings.required("model")
		r.secretOnly(embeddings.text("api_key"))
		r.address(embeddings.text("base_url"))
		embeddings.number("dimensions", 1, 1, 100_000)
		embeddings.done()
		r.later(embeddings.at, true, "this build searches by words only and has no embeddings; leave the block out")
	}
	sandbox := o.object("sandbox")
	kind := sandbox.choice("type", "none", "none", "e2b", "local")
	r.later(kind.at, kind.v == "e2b" || kind.v == "local", "this build has no sandbox; say `none` or leave the block out")
	if kind.v == "none" {
		sandbox.done()
	}
}

func (r *reader) providerLater(o *object) {
	reasoning := o.boolean("reasoning", false)
	r.later(reasoning.at, reasoning.v, "this build asks models without extended reasoning; say false or leave it out")
	effort := o.choice("reasoning_effort", "", "minimal", "low", "medium", "high")
	budget := o.number("reasoning_budget_tokens", 0, 0, 1_000_000)
	r.later(effort.at, effort.given && !reasoning.given, "this build asks models without extended reasoning; leave it out")
	r.later(budget.at, budget.v > 0 && !reasoning.given, "this build asks models without extended reasoning; leave it out")
}

func (r *reader) tracker(o *object) string {
	backend := o.choice("backend", "native", "native", "none", "jira", "gitlab")
	r.later(backend.at, backend.v == "jira" || backend.v == "gitlab",
		"this build has its own tracker only; say `native`, or `none` and reach the other one through an MCP server")
	o.done()
	return backend.v
}

// knowledge answers the backend and the container of tool skills.
func (r *reader) knowledge(o *object) (string, value[string]) {
	backend := o.choice("backend", "native", "native", "none", "confluence")
	r.later(backend.at, backend.v == "confluence",
		"this build has its own knowledge base only; say `native`, or `none` and reach the other one through an MCP server")
	scope := o.texts("scope")
	r.later(under(o.at, "scope"), len(scope) > 0, "this build searches every container; leave the list empty")
	skills := o.text("skills_container")
	r.matching(skills, containerShape, containerWords)
	if skills.given && backend.v == "none" {
		r.add(skills.at, KindValue, "is a container of the knowledge base, and the company has none: the backend is `none`")
	}
	root := o.text("root_space")
	r.later(root.at, root.v != "", "this build has no container above the others; leave it out")
	vectors := o.boolean("vectors", false)
	r.later(vectors.at, vectors.v, "this build searches by words only; say false or leave it out")
	o.done()
	return backend.v, skills
}

func (r *reader) turnEngineLater(o *object) {
	iterations := o.number("max_iterations", 1, 1, 20)
	r.later(iterations.at, iterations.v > 1, "this build runs a turn once, without a reviewer; say 1 or leave it out")
	onboarding := o.number("onboarding_max_tool_rounds", 0, 0, 200)
	ceiling := o.number("onboarding_max_tool_rounds_ceiling", 20, 1, 200)
	r.later(onboarding.at, onboarding.v > 0, "this build has no onboarding pass; say 0 or leave it out")
	if onboarding.v > ceiling.v {
		r.add(onboarding.at, KindValue, "must be at most onboarding_max_tool_rounds_ceiling, which is %d, not %d", ceiling.v, onboarding.v)
	}
	extension := o.boolean("extension_enabled", false)
	o.number("extension_round_step", 8, 1, 48)
	r.later(extension.at, extension.v, "this build gives a turn no more rounds than max_tool_rounds; say false or leave it out")
	o.number("sandbox_min_budget_tokens", 2000, 0, most)

	delegation := o.object("delegation")
	delegation.number("max_parallel", 3, 1, 32)
	delegation.number("max_tasks_per_call", 8, 1, 64)
	turns := delegation.number("max_turns", 20, 1, 200)
	limit := delegation.number("max_turns_ceiling", 40, 1, 200)
	if turns.v > limit.v {
		r.add(turns.at, KindValue, "must be at most max_turns_ceiling, which is %d, not %d", limit.v, turns.v)
	}
	delegation.fraction("budget_fraction", 0, 1)
	delegation.number("min_tokens_per_task", 500, 0, most)
	delegation.number("task_timeout_seconds", 300, 1, day)
	delegation.number("call_timeout_seconds", 900, 1, day)
	delegation.done()
	r.later(delegation.at, len(delegation.order) > 0, "this build has no workers to delegate to; leave the block out")

	session := o.object("conversation_session")
	on := session.boolean("enabled", true)
	session.number("max_entries", 20, 1, 1000)
	session.number("retention_days", 30, 1, 3650)
	session.done()
	r.later(session.at, len(session.order) > 0 && on.v, "this build remembers no earlier turns of a conversation; say `enabled: false` or leave the block out")
}

func (r *reader) learning(o *object) {
	enabled := o.boolean("enabled", true)
	block := func(name string, read func(*object)) {
		b := o.object(name)
		b.boolean("enabled", true)
		read(b)
		b.done()
	}
	block("episodic", func(b *object) { b.number("retrieval_limit", 5, 1, 20) })
	block("reflect", func(b *object) {
		b.boolean("persist_decider", true)
		b.boolean("summarize_episodes", true)
	})
	block("counterparty", func(*object) {})
	block("skill_synthesis", func(b *object) {
		b.number("min_tool_calls", 5, 1, 1000)
		b.number("max_skills_per_agent", 50, 0, 10_000)
		b.fraction("duplicate_jaccard_threshold", 0, 1)
		b.boolean("scheduler_enabled", false)
	})
	block("skill_refinement", func(b *object) {
		b.number("max_body_chars", 20_000, 1, 1_000_000)
		b.number("max_versions_kept", 10, 1, 1000)
	})
	block("skill_promotion", func(b *object) { b.number("min_sibling_count", 3, 2, 100) })
	block("personal_memory", func(b *object) { b.number("max_refreshes_per_turn", 3, 0, 100) })
	block("episode_lifecycle", func(b *object) {
		b.number("max_raw_episodes_per_agent", 500, 1, 1_000_000)
		b.number("compaction_min_age_days", 30, 1, 3650)
	})
	o.done()
	r.later(o.at, len(o.order) > 0 && enabled.v, "this build has no memory of its own; say `enabled: false` or leave the block out")
}

func (r *reader) builtinTools(o *object) {
	for _, name := range []string{"purchases", "reminders"} {
		b := o.object(name)
		enabled := b.boolean("enabled", false)
		r.later(enabled.at, enabled.v, "this build has no such tools; say false or leave it out")
		b.done()
	}
	mutator := o.choice("config_mutator", "off", "off", "propose", "apply")
	r.later(mutator.at, mutator.v == "propose" || mutator.v == "apply", "in this build no seat changes the document; say `off` or leave it out")
	for _, name := range []string{"members", "portal"} {
		on := o.boolean(name, false)
		r.later(on.at, on.v, "this build has no such tools; say false or leave it out")
	}
	o.done()
}

func (r *reader) integrationsLater(o *object) {
	for _, vendor := range []string{"jira", "confluence", "gitlab", "mattermost", "datadog", "forge"} {
		_, at, given := o.take(vendor)
		r.later(at, given, "this build takes webhooks of GitHub and Slack only; leave the block out")
	}
}

func (r *reader) seatIntegrationsLater(o *object) {
	for _, vendor := range []string{"jira", "confluence", "gitlab", "mattermost", "datadog"} {
		_, at, given := o.take(vendor)
		r.later(at, given, "this build gives a seat an account at GitHub and Slack only; leave the block out")
	}
}

func (r *reader) seatLater(s *draftSeat, o *object) {
	r.budget(o.object("token_budget"))
	learns := o.boolean("learning_enabled", false)
	r.later(learns.at, learns.v, "this build has no memory of its own; say false or leave it out")
	s.workers = o.texts("workers")
	r.later(under(o.at, "workers"), len(s.workers) > 0, "this build has no workers to delegate to; leave the list empty")
	sandbox := o.object("sandbox")
	enabled := sandbox.boolean("enabled", false)
	sandbox.done()
	r.later(enabled.at, enabled.v, "this build has no sandbox; say false or leave it out")
	r.schedules(o.list("schedules"), false)
}
