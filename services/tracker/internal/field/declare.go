package field

import (
	"fmt"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Terms are what declarations are checked against.
type Terms struct {
	// Types are the slugs of the types of work there are, archived ones too.
	Types []string
	// Workspace is what a project's own declarations are united with; nil for the workspace's own.
	Workspace Document
	// Agent: an agent declares, so what is hidden from agents stays as it is.
	Agent bool
	// Author and Now are the write's: nobody says when they declared what.
	Author string
	Now    time.Time
}

// Revise answers the document after a new list took the place of the old one, and whether that changes anything. A declaration is an old one's
// when it has its id, or no id and its slug. What is left out is archived and stays, as items have values of it; a project's own form of a
// workspace's field goes, and with it the difference. What an agent cannot see it neither leaves out nor changes. Argument paths begin with `fields`.
func (doc Document) Revise(wanted []Declaration, t Terms) (Document, bool, error) {
	var next Document
	for n, d := range wanted {
		path := fmt.Sprintf("fields[%d]", n)
		d, err := doc.settle(d, t, path)
		if err != nil {
			return nil, false, err
		}
		if next.index(d.ID) >= 0 {
			return nil, false, fault.New(fault.Invalid, "field %s is declared twice", d.Slug).WithField(path)
		}
		if !d.Archived && next.live(d.Slug) >= 0 {
			return nil, false, fault.New(fault.Invalid, "two fields are named %s: a slug is one field's", d.Slug).WithField(path + ".slug")
		}
		next = append(next, d)
	}
	for _, d := range doc {
		unseen := t.Agent && d.HideFromAgents
		if next.index(d.ID) >= 0 || t.Workspace.index(d.ID) >= 0 && !d.Archived && !unseen {
			continue
		}
		d.Archived = d.Archived || !unseen
		next = append(next, d)
	}
	if err := next.clash(t); err != nil {
		return nil, false, err
	}
	return next, !reflect.DeepEqual(doc, next) && len(doc)+len(next) > 0, next.full()
}

// settle answers a declaration with what it keeps of the old one, or of the workspace's, and checks it.
func (doc Document) settle(d Declaration, t Terms, path string) (Declaration, error) {
	d.Slug, d.Name = strings.TrimSpace(d.Slug), strings.TrimSpace(d.Name)
	at := doc.index(d.ID)
	if d.ID == "" {
		at = doc.live(d.Slug)
	}
	d.Author, d.CreatedAt = t.Author, t.Now
	switch base := t.Workspace.index(d.ID); {
	case t.Agent && (at >= 0 && doc[at].HideFromAgents || at < 0 && base >= 0 && t.Workspace[base].HideFromAgents):
		return d, hiddenField(d.Slug).WithField(path)
	case at >= 0:
		old := doc[at]
		if old.Archived && !d.Archived {
			return d, fault.New(fault.Invalid, "field %s is archived and stays so: declare another one without an id", old.Slug).WithField(path + ".archived")
		}
		if old.Type != d.Type {
			return d, keepsType(old, d).WithField(path + ".type")
		}
		d.ID, d.Author, d.CreatedAt = old.ID, old.Author, old.CreatedAt
		var err error
		if d.Options, err = settleOptions(old.Options, d.Options, path); err != nil {
			return d, err
		}
	case base >= 0:
		old := t.Workspace[base]
		if old.Archived && !d.Archived {
			return d, fault.New(fault.Invalid, "field %s is archived for the whole workspace: declare another one without an id", old.Slug).WithField(path + ".archived")
		}
		if old.Type != d.Type {
			return d, keepsType(old, d).WithField(path + ".type")
		}
		var err error
		if d.Options, err = settleOptions(old.Options, d.Options, path); err != nil {
			return d, err
		}
	default:
		if err := d.mint(path); err != nil {
			return d, err
		}
	}
	return d, d.valid(t, path)
}

func hiddenField(slug string) *fault.Error {
	return fault.New(fault.Forbidden, "there is a field that is hidden from agents where you declare %s, and only a person changes it: use another slug, without an id", slug)
}

func keepsType(old, d Declaration) *fault.Error {
	return fault.New(fault.Invalid, "field %s is %s, as its values are, and cannot become %s: leave it out, and declare another one under another slug",
		old.Slug, withArticle(old.Type), withArticle(d.Type))
}

// newID mints the id of a field or an option. One that a caller brings along must have its form, or it could be taken for a slug.
func newID() (string, error) {
	id, err := uuid.NewV7()
	return id.String(), err
}

func (d *Declaration) mint(path string) (err error) {
	if d.ID == "" {
		if d.ID, err = newID(); err != nil {
			return err
		}
	} else if err := uuid.Validate(d.ID); err != nil {
		return fault.New(fault.Invalid, "there is no field %q: leave id out to declare a new one", d.ID).WithField(path + ".id")
	}
	d.Options, err = settleOptions(nil, d.Options, path)
	return err
}

// settleOptions answers a new list of options with the ids of the old. An option that is left out is archived and stays.
func settleOptions(old, wanted []Option, path string) ([]Option, error) {
	var next []Option
	for n, o := range wanted {
		o.Slug, o.Name = strings.TrimSpace(o.Slug), strings.TrimSpace(o.Name)
		path := fmt.Sprintf("%s.options[%d]", path, n)
		at := slices.IndexFunc(old, func(p Option) bool { return o.ID == p.ID || o.ID == "" && o.Slug == p.Slug })
		switch {
		case at >= 0:
			o.ID = old[at].ID
		case o.ID == "":
			var err error
			if o.ID, err = newID(); err != nil {
				return nil, err
			}
		case uuid.Validate(o.ID) != nil:
			return nil, fault.New(fault.Invalid, "there is no option %q: leave id out to declare a new one", o.ID).WithField(path + ".id")
		}
		if slices.ContainsFunc(next, func(p Option) bool { return p.ID == o.ID }) {
			return nil, fault.New(fault.Invalid, "option %s is declared twice", o.Slug).WithField(path)
		}
		next = append(next, o)
	}
	for _, o := range old {
		if !slices.ContainsFunc(next, func(p Option) bool { return p.ID == o.ID }) {
			o.Archived = true
			next = append(next, o)
		}
	}
	return next, nil
}

var (
	slugForm  = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]{0,63}$`)
	colorForm = regexp.MustCompile(`^(#[0-9a-fA-F]{6})?$`)
)

// valid checks a declaration by itself.
func (d Declaration) valid(t Terms, path string) error {
	refuse := func(setting, format string, args ...any) error {
		return fault.New(fault.Invalid, format, args...).WithField(path + "." + setting)
	}
	switch {
	case !slugForm.MatchString(d.Slug):
		return refuse("slug", "a slug has lower case letters, digits, - and _, 64 of them at most, not %q", d.Slug)
	case d.Name == "" || len(d.Name) > 128:
		return refuse("name", "the name of %s must have 1 to 128 bytes", d.Slug)
	case d.Type == Rollup:
		return refuse("type", "a rollup is refused: nothing computes it; a number can be set by hand")
	case !slices.Contains(types(), d.Type):
		return refuse("type", "there is no type %q; there are %s", d.Type, strings.Join(types(), ", "))
	case d.HideFromAgents && (d.Required || d.RequiredInSubtasks):
		return refuse("hide_from_agents", "%s is demanded and hidden from agents, so no agent could file anything: take one away", d.Slug)
	}
	for n, slug := range d.AppliesTo {
		if !slices.Contains(t.Types, slug) {
			return refuse(fmt.Sprintf("applies_to[%d]", n), "there is no type of work %q; there are %s", slug, strings.Join(t.Types, ", "))
		}
	}
	if err := d.settings(refuse); err != nil {
		return err
	}
	return d.offers(refuse)
}

// types are those that can be declared.
func types() []string {
	return []string{Text, Textarea, Number, Date, Dropdown, Labels, Checkbox, URL, Email, Progress, Relationship, People}
}

type refusal func(setting, format string, args ...any) error

// settings refuses those that the field's type cannot read.
func (d Declaration) settings(refuse refusal) error {
	for _, s := range []struct {
		name  string
		given bool
		read  []string
	}{
		{"options", len(d.Options) > 0, []string{Dropdown, Labels}},
		{"unit", d.Unit != "", []string{Number}},
		{"precision", d.Precision != nil, []string{Number}},
		{"min", d.Min != nil, []string{Number, Progress}},
		{"max", d.Max != nil, []string{Number, Progress}},
		{"time", d.Time, []string{Date}},
		{"multi", d.Multi, []string{Dropdown}},
		{"progress", d.Progress != "", []string{Progress}},
	} {
		if s.given && !slices.Contains(s.read, d.Type) {
			return refuse(s.name, "%s is %s, which does not read %s: that is for %s", d.Slug, withArticle(d.Type), s.name, strings.Join(s.read, " and "))
		}
	}
	switch {
	case d.Progress == "auto" || d.Progress == "tracking":
		return refuse("progress", "progress: %s is refused: nothing computes it; manual is what there is", d.Progress)
	case d.Progress != "" && d.Progress != "manual":
		return refuse("progress", "progress must be manual, not %q", d.Progress)
	case len(d.Unit) > MaxUnitBytes:
		return refuse("unit", "a unit has %d bytes at most, and %q has %d", MaxUnitBytes, d.Unit, len(d.Unit))
	case d.places() < 0 || d.places() > MaxPrecision:
		return refuse("precision", "precision must be 0 to %d, not %d", MaxPrecision, d.places())
	}
	for name, bound := range map[string]*float64{"min": d.Min, "max": d.Max} {
		if bound != nil && (math.IsNaN(*bound) || math.IsInf(*bound, 0)) {
			return refuse(name, "%s must be a number, not %s", name, decimal(*bound))
		}
	}
	if least, most := d.bounds(); least != nil && most != nil && *least > *most {
		return refuse("min", "min is %s and max %s: no value of %s could be both", decimal(*least), decimal(*most), d.Slug)
	}
	return nil
}

// offers checks the options.
func (d Declaration) offers(refuse refusal) error {
	live := 0
	for n, o := range d.Options {
		path := fmt.Sprintf("options[%d]", n)
		switch {
		case !slugForm.MatchString(o.Slug):
			return refuse(path+".slug", "a slug has lower case letters, digits, - and _, 64 of them at most, not %q", o.Slug)
		case o.Name == "" || len(o.Name) > 128:
			return refuse(path+".name", "the name of option %s must have 1 to 128 bytes", o.Slug)
		case !colorForm.MatchString(o.Color):
			return refuse(path+".color", "color must be such as #1f6feb, not %q", o.Color)
		}
		if o.Archived {
			continue
		}
		live++
		for _, other := range d.Options[:n] {
			if !other.Archived && alike(o, other) {
				return refuse(path, "options %s and %s of %s would be taken for each other: call one something else", other.Slug, o.Slug, d.Slug)
			}
		}
	}
	if live > MaxOptions {
		return refuse("options", "%s offers %d options; a field may offer %d", d.Slug, live, MaxOptions)
	}
	if d.Chosen() && live == 0 && !d.Archived {
		return refuse("options", "%s offers nothing to choose from: give options", d.Slug)
	}
	return nil
}

func alike(a, b Option) bool {
	return strings.EqualFold(a.Slug, b.Slug) || strings.EqualFold(a.Name, b.Name) || strings.EqualFold(a.Slug, b.Name) || strings.EqualFold(a.Name, b.Slug)
}

// clash refuses a project's field that has the slug of another field of the workspace.
func (doc Document) clash(t Terms) error {
	workspace := t.Workspace
	for n, d := range doc {
		at := workspace.live(d.Slug)
		if d.Archived || at < 0 || workspace[at].ID == d.ID || doc.index(workspace[at].ID) >= 0 {
			continue
		}
		if t.Agent && workspace[at].HideFromAgents {
			return hiddenField(d.Slug).WithField(fmt.Sprintf("fields[%d]", n))
		}
		return fault.New(fault.Invalid, "the whole workspace has a field %s already: give its id %s to change it for this project, or use another slug", d.Slug, workspace[at].ID).
			WithField(fmt.Sprintf("fields[%d].slug", n))
	}
	return nil
}

// Clash refuses a workspace's document that a project's own does not go together with: a slug that is another field's there, or an id that is
// a field of another type.
func (doc Document) Clash(project string, own Document) error {
	for n, d := range doc {
		path := fmt.Sprintf("fields[%d]", n)
		if at := own.index(d.ID); at >= 0 {
			if own[at].Type != d.Type {
				return fault.New(fault.Invalid, "project %s has field %s as %s, so it cannot be %s for all", project, own[at].Slug, withArticle(own[at].Type), withArticle(d.Type)).
					WithField(path + ".type")
			}
			continue
		}
		if at := own.live(d.Slug); !d.Archived && at >= 0 && doc.index(own[at].ID) < 0 {
			return fault.New(fault.Invalid, "project %s has a field %s of its own: use another slug, or its id %s", project, d.Slug, own[at].ID).WithField(path + ".slug")
		}
	}
	return nil
}

// full refuses a document over its limits.
func (doc Document) full() error {
	live, options := 0, 0
	for _, d := range doc {
		options += len(d.Options)
		if !d.Archived {
			live++
		}
	}
	switch {
	case live > MaxFields:
		return fault.New(fault.Invalid, "fields has %d that are not archived; there may be %d", live, MaxFields).WithField("fields")
	case len(doc) > MaxKept:
		return fault.New(fault.Invalid, "fields would keep %d, archived ones among them; there may be %d", len(doc), MaxKept).WithField("fields")
	case options > MaxDocumentOptions:
		return fault.New(fault.Invalid, "fields would keep %d options in all, archived ones among them; there may be %d", options, MaxDocumentOptions).WithField("fields")
	}
	return nil
}
