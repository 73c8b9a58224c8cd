package item

import (
	"crypto/rand"
	"slices"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Limits of checklists.
const (
	MaxLists      = 16
	MaxListSteps  = 64
	MaxSteps      = 256
	stepIDLetters = 10
)

// Checklist is a list of small steps.
type Checklist struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	Items []Step `json:"items"`
}

// Step is one entry of a checklist.
type Step struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Done     bool   `json:"done,omitempty"`
	Assignee string `json:"assignee,omitempty"`
}

// Gesture is one change to checklists. It is made to the lists as they are when it lands, so that two people's gestures both stand, and
// may change the lists it is given, which are its own.
type Gesture func(lists []Checklist) ([]Checklist, error)

// steps applies a gesture to a copy of the item's lists; nil does nothing.
func (i *Item) steps(gesture Gesture) error {
	if gesture == nil {
		return nil
	}
	lists := slices.Clone(i.Checklists)
	for n := range lists {
		lists[n].Items = slices.Clone(lists[n].Items)
	}
	lists, err := gesture(lists)
	if err != nil {
		return err
	}
	i.Checklists = lists
	return nil
}

// AddList adds a list with its steps at the end.
func AddList(name string, steps []string) Gesture {
	return func(lists []Checklist) ([]Checklist, error) {
		if err := Line("checklist.add_list.name", name); err != nil {
			return nil, err
		}
		list := Checklist{ID: newStepID(), Name: name, Items: make([]Step, 0, len(steps))}
		for _, step := range steps {
			if err := Line("checklist.add_list.items", step); err != nil {
				return nil, err
			}
			list.Items = append(list.Items, Step{ID: newStepID(), Name: step})
		}
		lists = append(lists, list)
		if len(lists) > MaxLists {
			return nil, fault.New(fault.Invalid, "the item would have %d checklists, and has at most %d: remove one first", len(lists), MaxLists).
				WithField("checklist.add_list")
		}
		return lists, room(lists, len(lists)-1, "checklist.add_list.items")
	}
}

// RemoveList takes a list away, with its steps. A list is named by its id or its name.
func RemoveList(list string) Gesture {
	return func(lists []Checklist) ([]Checklist, error) {
		at, err := findList(lists, "checklist.remove_list.list", list)
		if err != nil {
			return nil, err
		}
		return slices.Delete(lists, at, at+1), nil
	}
}

// RenameList calls a list something else.
func RenameList(list, name string) Gesture {
	return func(lists []Checklist) ([]Checklist, error) {
		at, err := findList(lists, "checklist.rename_list.list", list)
		if err != nil {
			return nil, err
		}
		lists[at].Name = name
		return lists, Line("checklist.rename_list.name", name)
	}
}

// AddStep adds a step at the end of a list. assignee is a handle, or empty for nobody.
func AddStep(list, name, assignee string) Gesture {
	return func(lists []Checklist) ([]Checklist, error) {
		at, err := findList(lists, "checklist.add_item.list", list)
		if err != nil {
			return nil, err
		}
		if err := Line("checklist.add_item.name", name); err != nil {
			return nil, err
		}
		lists[at].Items = append(lists[at].Items, Step{ID: newStepID(), Name: name, Assignee: assignee})
		return lists, room(lists, at, "checklist.add_item")
	}
}

// RemoveStep takes a step away. A step is named by its id, or by its name when only one has that.
func RemoveStep(step string) Gesture {
	return func(lists []Checklist) ([]Checklist, error) {
		list, at, err := findStep(lists, "checklist.remove_item.item", step)
		if err != nil {
			return nil, err
		}
		list.Items = slices.Delete(list.Items, at, at+1)
		return lists, nil
	}
}

// RenameStep lets a step say something else.
func RenameStep(step, name string) Gesture {
	return onStep("checklist.rename_item", step, func(s *Step) error {
		s.Name = name
		return Line("checklist.rename_item.name", name)
	})
}

// SetStepDone ticks a step, or takes the tick away.
func SetStepDone(step string, done bool) Gesture {
	return onStep("checklist.set_done", step, func(s *Step) error {
		s.Done = done
		return nil
	})
}

// AssignStep gives a step to somebody, by handle; empty for nobody.
func AssignStep(step, assignee string) Gesture {
	return onStep("checklist.assign_item", step, func(s *Step) error {
		s.Assignee = assignee
		return nil
	})
}

func onStep(argument, step string, change func(*Step) error) Gesture {
	return func(lists []Checklist) ([]Checklist, error) {
		list, at, err := findStep(lists, argument+".item", step)
		if err != nil {
			return nil, err
		}
		return lists, change(&list.Items[at])
	}
}

// newStepID answers an id that is short enough for a model to repeat and is never given twice in an item.
func newStepID() string { return strings.ToLower(rand.Text()[:stepIDLetters]) }

// room refuses more steps than a list, or all of them together, may have.
func room(lists []Checklist, at int, argument string) error {
	all := 0
	for _, list := range lists {
		all += len(list.Items)
	}
	switch {
	case len(lists[at].Items) > MaxListSteps:
		return fault.New(fault.Invalid, "%s would have %d steps, and a checklist has at most %d: put the rest into another list", lists[at].Name,
			len(lists[at].Items), MaxListSteps).WithField(argument)
	case all > MaxSteps:
		return fault.New(fault.Invalid, "the checklists would have %d steps together, and have at most %d: remove some, or make them items of their own",
			all, MaxSteps).WithField(argument)
	}
	return nil
}

func findList(lists []Checklist, argument, text string) (int, error) {
	var found []int
	var there []string
	for n, list := range lists {
		if list.ID == text {
			return n, nil
		}
		if strings.EqualFold(list.Name, text) {
			found = append(found, n)
		}
		there = append(there, list.Name+" ("+list.ID+")")
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return 0, notOne(argument, "checklist", text, len(found), there)
}

func findStep(lists []Checklist, argument, text string) (*Checklist, int, error) {
	type place struct {
		list *Checklist
		at   int
	}
	var found []place
	var there []string
	for l := range lists {
		for n, step := range lists[l].Items {
			if step.ID == text {
				return &lists[l], n, nil
			}
			if step.Name == text {
				found = append(found, place{&lists[l], n})
				there = append(there, step.ID)
			}
		}
	}
	if len(found) == 1 {
		return found[0].list, found[0].at, nil
	}
	return nil, 0, notOne(argument, "step", text, len(found), there)
}

// notOne refuses a text that names nothing, or more than one.
func notOne(argument, what, text string, found int, there []string) error {
	if found > 1 {
		return fault.New(fault.Invalid, "%s is ambiguous: %d have the name %q; give an id of %s", argument, found, text, Members(there)).WithField(argument)
	}
	hint := "get_work_item shows them with their ids"
	if len(there) > 0 {
		hint = "there are " + Members(there)
	}
	return fault.New(fault.Invalid, "%s names no %s of the item: there is no %q; %s", argument, what, text, hint).WithField(argument)
}
