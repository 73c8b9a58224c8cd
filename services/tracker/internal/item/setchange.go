package item

import (
	"slices"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// SetChange says how a set changes, in one way: members to add and to remove, or the whole set, or nothing in it any more.
type SetChange struct {
	Add, Remove []string
	Set         []string
	Clear       bool
}

// Check refuses a change that says nothing, or says it in more than one way. argument is the one that it came in.
func (c SetChange) Check(argument string) error {
	ways := 0
	for _, given := range []bool{len(c.Add)+len(c.Remove) > 0, len(c.Set) > 0, c.Clear} {
		if given {
			ways++
		}
	}
	if ways == 1 {
		return nil
	}
	return fault.New(fault.Invalid, `%s must be either {"add": […], "remove": […]} or {"set": […]}, and {"clear": true} to empty it; give one of these`, argument).
		WithField(argument)
}

// Resolve answers the change with every member as resolve answers it, each once.
func (c SetChange) Resolve(resolve func(member string) (string, error)) (SetChange, error) {
	out := SetChange{Clear: c.Clear}
	for _, part := range []struct {
		from []string
		to   *[]string
	}{{c.Add, &out.Add}, {c.Remove, &out.Remove}, {c.Set, &out.Set}} {
		for _, member := range part.from {
			resolved, err := resolve(member)
			if err != nil {
				return SetChange{}, err
			}
			if !slices.Contains(*part.to, resolved) {
				*part.to = append(*part.to, resolved)
			}
		}
	}
	return out, nil
}

// Apply answers the set as the change leaves it, in the order it has, with what is added at its end. The given one stays as it is.
// What is both added and removed is removed.
func (c SetChange) Apply(members []string) []string {
	switch {
	case c.Clear:
		return nil
	case len(c.Set) > 0:
		return slices.Clone(c.Set)
	}
	out := slices.Clone(members)
	for _, member := range c.Add {
		if !slices.Contains(out, member) {
			out = append(out, member)
		}
	}
	return slices.DeleteFunc(out, func(member string) bool { return slices.Contains(c.Remove, member) })
}
