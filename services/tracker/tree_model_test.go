package tracker_test

import (
	"slices"

	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
)

// forest is what a few gestures may do to trees, written once more without a database.
type forest map[string]*plant

// plant is an item of a forest; names are ids.
type plant struct {
	project, parent, with, merged string
	open                          bool
}

func (f forest) depth(id string) int {
	if id == "" {
		return 0
	}
	return f.depth(f[id].parent) + 1
}

// below answers everything below an item, the trash included.
func (f forest) below(id string) (all []string) {
	for child, p := range f {
		if p.parent == id {
			all = append(append(all, child), f.below(child)...)
		}
	}
	return all
}

// height is how many levels of items stand below some depth.
func (f forest) height(ids []string, depth int) (levels int) {
	for _, id := range ids {
		levels = max(levels, f.depth(id)-depth)
	}
	return levels
}

func (f forest) create(id, project, parent string) bool {
	if parent != "" {
		p := f[parent]
		if p.with != "" || p.project != project || f.depth(parent) >= item.MaxDepth {
			return false
		}
	}
	f[id] = &plant{project: project, parent: parent, open: true}
	return true
}

func (f forest) hang(id, parent string) bool {
	x := f[id]
	if x.with != "" {
		return false
	}
	if parent == "" || parent == x.parent {
		if parent != "" && f[parent].with != "" {
			return false
		}
		x.parent = parent
		return true
	}
	p := f[parent]
	below := f.below(id)
	if parent == id || p.with != "" || p.project != x.project || slices.Contains(below, parent) ||
		f.depth(parent)+1+f.height(below, f.depth(id)) > item.MaxDepth {
		return false
	}
	x.parent = parent
	return true
}

func (f forest) remove(id string, subtree bool) bool {
	if f[id].with != "" {
		return true
	}
	live := slices.DeleteFunc(f.below(id), func(n string) bool { return f[n].with != "" })
	if !subtree && slices.ContainsFunc(live, func(n string) bool { return f[n].open }) {
		return false
	}
	f[id].with = id
	for _, n := range live {
		if subtree {
			f[n].with = id
		}
	}
	return true
}

func (f forest) restore(id string) bool {
	if f[id].with != id {
		return false
	}
	for _, p := range f {
		if p.with == id {
			p.with = ""
		}
	}
	if parent := f[id].parent; parent != "" && f[parent].with != "" {
		f[id].parent = ""
	}
	return true
}

func (f forest) move(id, project string) bool {
	x := f[id]
	below := f.below(id)
	switch {
	case x.with != "":
		return false
	case x.project == project:
		return true
	case x.parent != "" || slices.ContainsFunc(below, func(n string) bool { return f[n].with != "" }):
		return false
	}
	for _, n := range append(below, id) {
		f[n].project = project
	}
	return true
}

func (f forest) merge(id, into string) bool {
	if id == into {
		return false
	}
	x, y := f[id], f[into]
	var children, moving []string
	for n, p := range f {
		if p.parent == id && p.with == "" {
			children = append(children, n)
			moving = append(append(moving, n), f.below(n)...)
		}
	}
	if len(moving) > 0 && (x.project != y.project || slices.Contains(moving, into) || f.depth(into)+f.height(moving, f.depth(id)) > item.MaxDepth) {
		return false
	}
	if x.merged == into {
		return true
	}
	if x.with != "" || y.with != "" || x.merged != "" || y.merged != "" {
		return false
	}
	x.merged, x.open = into, false
	for _, n := range children {
		f[n].parent = into
	}
	return true
}

func (f forest) purge(id string) bool {
	x := f[id]
	var tops func(from string) // of what went into the trash with it, branch by branch
	reroot := map[string]string{}
	tops = func(from string) {
		for n, p := range f {
			if p.parent == from && p.with == id {
				reroot[n] = n
				if from != id && reroot[from] != "" {
					reroot[n] = reroot[from]
				}
				tops(n)
			}
		}
	}
	if x.with == id {
		for n, p := range f {
			if n != id && p.with == id && (p.parent == "" || p.parent == id || f[p.parent].with != id) {
				reroot[n] = n
				tops(n)
			}
		}
	}
	for n, with := range reroot {
		f[n].with = with
	}
	for _, p := range f {
		if p.parent == id {
			p.parent = x.parent
		}
		if p.merged == id {
			p.merged = ""
		}
	}
	delete(f, id)
	return true
}
