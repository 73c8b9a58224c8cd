package document

import (
	"fmt"
	"strconv"

	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// place is where a value stands.
type place struct {
	path         string
	line, column int
}

// value is something read, with its place. For one that the document leaves out, given is false, v is the default and the
// place is that of the mapping it is missing from.
type value[T any] struct {
	v     T
	at    place
	given bool
}

// reader gathers problems while the tree is read.
type reader struct{ problems []Problem }

func (r *reader) add(at place, kind, format string, args ...any) {
	r.problems = append(r.problems, Problem{
		Path: at.path, Line: at.line, Column: at.column, Kind: kind, Message: fmt.Sprintf(format, args...),
	})
}

func placeOf(path string, n *yamltree.Node) place {
	return place{path: path, line: n.Line, column: n.Column}
}

// wrongType says what a value had to be.
func (r *reader) wrongType(n *yamltree.Node, at place, want string) {
	r.add(at, KindType, "must be %s, not %s", want, n.Kind)
}

// object is a mapping being read. Every key that is asked for becomes a known one; done reports the others.
type object struct {
	r     *reader
	at    place
	given bool
	// wrong is set for what is no mapping; that is the one problem it has.
	wrong   bool
	entries map[string]yamltree.Entry
	order   []yamltree.Entry
	known   []string
}

// object reads n as a mapping. Anything else is a problem and reads as an empty one, so that reading goes on.
func (r *reader) object(n *yamltree.Node, at place) *object {
	o := &object{r: r, at: at, entries: map[string]yamltree.Entry{}}
	switch n.Kind {
	case yamltree.Null:
		return o
	case yamltree.Map:
		o.given = true
	default:
		r.wrongType(n, at, "a mapping")
		o.wrong = true
		return o
	}
	for _, e := range n.Entries {
		if first, twice := o.entries[e.Key]; twice {
			r.add(o.place(e), KindDuplicate, "the key stands here for the second time; the first is on line %d", first.Line)
			continue
		}
		o.entries[e.Key] = e
		o.order = append(o.order, e)
	}
	return o
}

// place answers where an entry's key stands.
func (o *object) place(e yamltree.Entry) place {
	return place{path: join(o.at.path, e.Key), line: e.Line, column: e.Column}
}

// under answers the place of a key that is not there.
func under(at place, key string) place {
	at.path = join(at.path, key)
	return at
}

// join makes a path. A key that looks like a credential was put there by mistake and is not repeated.
func join(path, key string) string {
	if looksSecret(key) || len(key) > maxQuoted {
		key = "…"
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// take answers the value of key. A value of nothing, as in `key:`, counts as left out.
func (o *object) take(key string) (n *yamltree.Node, at place, given bool) {
	o.known = append(o.known, key)
	e, ok := o.entries[key]
	if !ok || e.Value.Kind == yamltree.Null {
		return nil, under(o.at, key), false
	}
	return e.Value, o.place(e), true
}

// done reports the keys that nobody asked for.
func (o *object) done() {
	for _, e := range o.order {
		if !contains(o.known, e.Key) {
			o.r.add(o.place(e), KindUnknownKey, "unknown key %s; %s", quote(e.Key), o.r.suggestion(e.Key, o.known))
		}
	}
}

// object reads the mapping under key; one that is left out is empty and not given.
func (o *object) object(key string) *object {
	n, at, given := o.take(key)
	if !given {
		return &object{r: o.r, at: at, entries: map[string]yamltree.Entry{}}
	}
	return o.r.object(n, at)
}

// text reads text; "" when left out.
func (o *object) text(key string) value[string] {
	n, at, given := o.take(key)
	if !given {
		return value[string]{at: at}
	}
	if n.Kind != yamltree.String {
		o.r.wrongType(n, at, "text")
		return value[string]{at: at}
	}
	return value[string]{v: n.Text, at: at, given: true}
}

// required reads text that must be there and not be empty.
func (o *object) required(key string) value[string] {
	before := len(o.r.problems)
	v := o.text(key)
	if v.v == "" && len(o.r.problems) == before {
		o.r.add(v.at, KindRequired, "is required")
	}
	return v
}

// choice reads one of a closed set.
func (o *object) choice(key, fallback string, set ...string) value[string] {
	v := o.text(key)
	if !v.given {
		v.v = fallback
		return v
	}
	if !contains(set, v.v) {
		o.r.add(v.at, KindValue, "%s is not one of %s", quote(v.v), list(set))
	}
	return v
}

// number reads a whole number within bounds.
func (o *object) number(key string, fallback, low, high int) value[int] {
	n, at, given := o.take(key)
	if !given {
		return value[int]{v: fallback, at: at}
	}
	if n.Kind != yamltree.Int {
		o.r.wrongType(n, at, "a whole number")
		return value[int]{v: fallback, at: at}
	}
	if n.Int < int64(low) || n.Int > int64(high) {
		o.r.add(at, KindValue, "must be from %d to %d, not %s", low, high, strconv.FormatInt(n.Int, 10))
		return value[int]{v: fallback, at: at}
	}
	return value[int]{v: int(n.Int), at: at, given: true}
}

// fraction reads a number within bounds, whole or not.
func (o *object) fraction(key string, low, high float64) {
	n, at, given := o.take(key)
	if !given {
		return
	}
	if n.Kind != yamltree.Int && n.Kind != yamltree.Float {
		o.r.wrongType(n, at, "a number")
		return
	}
	if f, err := strconv.ParseFloat(n.Text, 64); err != nil || !(f >= low && f <= high) {
		o.r.add(at, KindValue, "must be from %v to %v", low, high)
	}
}

// boolean reads true or false.
func (o *object) boolean(key string, fallback bool) value[bool] {
	n, at, given := o.take(key)
	if !given {
		return value[bool]{v: fallback, at: at}
	}
	if n.Kind != yamltree.Bool {
		o.r.wrongType(n, at, "true or false")
		return value[bool]{v: fallback, at: at}
	}
	return value[bool]{v: n.True, at: at, given: true}
}

// item is a member of a list with its place.
type item struct {
	node *yamltree.Node
	at   place
}

// list reads a list.
func (o *object) list(key string) []item {
	n, at, given := o.take(key)
	if !given {
		return nil
	}
	if n.Kind != yamltree.List {
		o.r.wrongType(n, at, "a list")
		return nil
	}
	return items(n, at)
}

func items(n *yamltree.Node, at place) []item {
	out := make([]item, 0, len(n.Items))
	for i, child := range n.Items {
		out = append(out, item{node: child, at: placeOf(fmt.Sprintf("%s[%d]", at.path, i), child)})
	}
	return out
}

// texts reads a list of text.
func (o *object) texts(key string) []value[string] {
	return o.r.textItems(o.list(key))
}

func (r *reader) textItems(all []item) []value[string] {
	out := make([]value[string], 0, len(all))
	for _, i := range all {
		switch {
		case i.node.Kind != yamltree.String:
			r.wrongType(i.node, i.at, "text")
		case i.node.Text == "":
			r.add(i.at, KindValue, "must not be empty")
		default:
			out = append(out, value[string]{v: i.node.Text, at: i.at, given: true})
		}
	}
	return out
}

// members answers the entries of a mapping whose keys are free.
func (o *object) members() []member {
	out := make([]member, 0, len(o.order))
	for _, e := range o.order {
		o.known = append(o.known, e.Key)
		out = append(out, member{key: e.Key, node: e.Value, at: o.place(e)})
	}
	return out
}

type member struct {
	key  string
	node *yamltree.Node
	at   place
}

func plain(values []value[string]) []string {
	out := make([]string, 0, len(values))
	for _, v := range values {
		out = append(out, v.v)
	}
	return out
}
