package document

import "strings"

// maxCallSeconds is how long a call may take at most.
const maxCallSeconds = 3600

// oneNameEach refuses a tool that is named twice, raw and with the server's prefix: what one entry says would be lost.
func (r *reader) oneNameEach(o *object, prefix string) {
	if prefix == "" {
		return
	}
	for _, e := range o.order {
		raw, prefixed := strings.CutPrefix(e.Key, prefix)
		if first, twice := o.entries[raw]; prefixed && twice {
			r.add(o.place(e), KindDuplicate, "is the tool %s on line %d with the server's prefix; keep one of them", quote(raw), first.Line)
		}
	}
}

// toolSeconds reads how long a call of each tool may take.
func (r *reader) toolSeconds(o *object, prefix string) map[string]int {
	out := map[string]int{}
	r.oneNameEach(o, prefix)
	for _, m := range o.members() {
		out[m.key] = o.number(m.key, defaultCallSeconds, 1, maxCallSeconds).v
	}
	return out
}

// annotations reads what the operator says of tools, each hint in our spelling or in the protocol's.
func (r *reader) annotations(o *object, prefix string) map[string]Annotations {
	out := map[string]Annotations{}
	r.oneNameEach(o, prefix)
	for _, m := range o.members() {
		tool := r.object(m.node, m.at)
		hint := func(key, hintKey string) *bool {
			v, twin := tool.boolean(key, false), tool.boolean(hintKey, false)
			switch {
			case v.given && twin.given:
				r.add(twin.at, KindDuplicate, "says the same as %s; keep one of them", quote(key))
				return &v.v
			case v.given:
				return &v.v
			case twin.given:
				return &twin.v
			}
			return nil
		}
		out[m.key] = Annotations{
			ReadOnly:    hint("read_only", "readOnlyHint"),
			Destructive: hint("destructive", "destructiveHint"),
			Idempotent:  hint("idempotent", "idempotentHint"),
			OpenWorld:   hint("open_world", "openWorldHint"),
		}
		tool.done()
	}
	return out
}
