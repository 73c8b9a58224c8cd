// Package field is custom fields: what a workspace and its projects declare, and the values that items have.
//
// It is pure. A [Document] is the declarations of one place; [Effective] unites the workspace's with a project's and answers the [Set]
// that items of one type have. Everything that is asked about values is asked of a Set.
//
// The idea to hold: a value is checked whenever it is written and never bent to fit. It is kept under its field's id in a form that
// does not change when the field or an option is renamed; what a reader sees is made from that and the declaration of the day. So a value
// can be older than its declaration, and reading one never fails.
package field

import (
	"slices"
	"time"
)

// Types of fields.
const (
	Text         = "text"
	Textarea     = "textarea"
	Number       = "number"
	Date         = "date"
	Dropdown     = "dropdown"
	Labels       = "labels"
	Checkbox     = "checkbox"
	URL          = "url"
	Email        = "email"
	Progress     = "progress"
	Relationship = "relationship"
	People       = "people"
	// Rollup is known so that it can be refused in words: nothing computes it.
	Rollup = "rollup"
)

// Limits. Sizes are in bytes.
const (
	// MaxValues is how many fields of one item can have a value.
	MaxValues = 128
	// MaxValueBytes bounds any value but a textarea's.
	MaxValueBytes    = 4 << 10
	MaxTextareaBytes = 16 << 10
	// MaxFields is how many fields a document declares, archived ones not counted; MaxKept counts those too.
	MaxFields = 64
	MaxKept   = 512
	// MaxOptions is how many options a field offers; MaxDocumentOptions is how many a document keeps, archived ones among them.
	MaxOptions         = 128
	MaxDocumentOptions = 2048
	MaxUnitBytes       = 16
	MaxPrecision       = 6
)

// Declaration is a field.
type Declaration struct {
	// ID never changes; values are kept under it.
	ID string `json:"id"`
	// Slug is how arguments name the field, unique among a document's fields that are not archived.
	Slug        string   `json:"slug"`
	Name        string   `json:"name"`
	Type        string   `json:"type"`
	Description string   `json:"description,omitempty"`
	Options     []Option `json:"options,omitempty"`
	// Unit is what a number counts.
	Unit string `json:"unit,omitempty"`
	// Precision is a number's decimal places; nil is 0.
	Precision *int32 `json:"precision,omitempty"`
	// Min and Max bound a number or a progress; nil is no bound for the one, 0 and 100 for the other.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// Time makes a date a point in time.
	Time bool `json:"time,omitempty"`
	// Multi lets a dropdown take several options.
	Multi bool `json:"multi,omitempty"`
	// Progress is how a progress is kept: manual, or empty, which is the same.
	Progress string `json:"progress,omitempty"`
	// AppliesTo are the slugs of the types of work that have the field; none means all.
	AppliesTo []string `json:"applies_to,omitempty"`
	Required  bool     `json:"required,omitempty"`
	// RequiredInSubtasks is apart from Required: what a task must say, its parts need not.
	RequiredInSubtasks bool      `json:"required_in_subtasks,omitempty"`
	HideFromAgents     bool      `json:"hide_from_agents,omitempty"`
	Pinned             bool      `json:"pinned,omitempty"`
	Archived           bool      `json:"archived,omitempty"`
	Author             string    `json:"author"`
	CreatedAt          time.Time `json:"created_at"`
}

// Option is one value to choose.
type Option struct {
	// ID never changes; values name it.
	ID       string `json:"id"`
	Slug     string `json:"slug"`
	Name     string `json:"name"`
	Color    string `json:"color,omitempty"`
	Archived bool   `json:"archived,omitempty"`
}

// Document is what one place declares: the workspace, or a project. Archived fields stay in it.
type Document []Declaration

// Chosen reports whether the field's values are options.
func (d Declaration) Chosen() bool { return d.Type == Dropdown || d.Type == Labels }

// several reports whether a value can be more than one option.
func (d Declaration) several() bool { return d.Type == Labels || d.Multi }

// applies reports whether items of a type have the field; an empty type stands for any.
func (d Declaration) applies(workType string) bool {
	return workType == "" || len(d.AppliesTo) == 0 || slices.Contains(d.AppliesTo, workType)
}

// demanded reports whether an item must have a value.
func (d Declaration) demanded(subtask bool) bool {
	if subtask {
		return d.RequiredInSubtasks
	}
	return d.Required
}

func (d Declaration) places() int {
	if d.Precision == nil {
		return 0
	}
	return int(*d.Precision)
}

func (doc Document) index(id string) int {
	return slices.IndexFunc(doc, func(d Declaration) bool { return id != "" && d.ID == id })
}

// live finds the field with a slug that is not archived.
func (doc Document) live(slug string) int {
	return slices.IndexFunc(doc, func(d Declaration) bool { return !d.Archived && d.Slug == slug })
}
