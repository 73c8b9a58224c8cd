package document

import (
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// draftWorker is a template for delegated work.
type draftWorker struct {
	name  string
	model value[string]
}

func (r *reader) scheduling(o *object) {
	enabled := o.boolean("enabled", true)
	o.number("tick_seconds", 10, 1, 60)
	o.number("jitter_seconds", 0, 0, 3600)
	low := o.number("catchup_min_seconds", 120, 120, 7200)
	high := o.number("catchup_max_seconds", 7200, 120, 7200)
	if low.v > high.v {
		r.add(low.at, KindValue, "must be at most catchup_max_seconds, which is %d, not %d", high.v, low.v)
	}
	o.done()
	r.later(o.at, len(o.order) > 0 && enabled.v, "this build fires no schedules; say `enabled: false` or leave the block out")
}

// schedules reads the schedules of a unit or a seat, and answers the places of those that a unit gives to its lead.
func (r *reader) schedules(all []item, ofUnit bool) []place {
	var forLead []place
	names := map[string]int{}
	for _, i := range all {
		o := r.object(i.node, i.at)
		if o.wrong {
			continue
		}
		name := o.required("name")
		if first, twice := names[name.v]; twice && name.v != "" {
			r.add(name.at, KindDuplicate, "another schedule here, on line %d, has this name", first)
		}
		names[name.v] = name.at.line
		r.cron(o.required("cron"))
		o.required("task")
		enabled := o.boolean("enabled", true)
		o.number("timeout_seconds", 180, 1, day)
		o.boolean("catchup", true)
		if ofUnit {
			if target := o.choice("target", "each", "each", "lead"); target.v == "lead" {
				forLead = append(forLead, target.at)
			}
		}
		o.done()
		r.later(i.at, o.given && enabled.v, "this build fires no schedules; say `enabled: false` or leave it out")
	}
	return forLead
}

// cron checks a line of five fields: minute, hour, day of month, month, day of week.
func (r *reader) cron(v value[string]) {
	if v.v == "" {
		return
	}
	parser := cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)
	// The parser reads a zone in front of the fields; the company has one clock.
	zoned := strings.HasPrefix(v.v, "TZ=") || strings.HasPrefix(v.v, "CRON_TZ=")
	if _, err := parser.Parse(v.v); err != nil || zoned {
		r.add(v.at, KindValue, "must be five cron fields such as `30 9 * * 1-5`, not %s", quote(v.v))
	}
}

func (r *reader) workers(d *draft, o *object) {
	for _, m := range o.members() {
		w := r.object(m.node, m.at)
		if w.wrong {
			continue
		}
		w.required("description")
		w.required("system_prompt")
		w.texts("tools")
		model := w.text("model")
		w.number("max_turns", 20, 1, 40)
		if schema, at, given := w.take("output"); given && schema.Kind != yamltree.Map {
			r.wrongType(schema, at, "a mapping")
		}
		w.done()
		d.workers = append(d.workers, draftWorker{name: m.key, model: model})
	}
	r.later(o.at, len(o.order) > 0, "this build has no workers to delegate to; leave the block out")
}
