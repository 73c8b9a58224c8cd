package field

import (
	"fmt"
	"math"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/nearest"
)

// check answers the form that a value is kept in: a text, a number, a boolean, or for options their ids. before is what the item has: an
// archived option that it has it may keep.
func (d Declaration) check(given, before any, r Resolver) (kept any, warning string, err error) {
	switch d.Type {
	case Text, Textarea, URL, Email:
		kept, err = d.text(given)
	case Number, Progress:
		kept, err = d.number(given)
	case Date:
		return d.date(given, r.Zone)
	case Checkbox:
		var ok bool
		if kept, ok = given.(bool); !ok {
			err = d.wrong("true or false", given)
		}
	case Dropdown, Labels:
		kept, err = d.choice(given, before)
	case Relationship:
		kept, err = d.one(given, "the key or id of a work item", r.Item)
	case People:
		kept, err = d.one(given, "exactly one colleague", r.Colleague)
	default:
		err = fault.New(fault.Invalid, "%s is a %s, which takes no value", d.Slug, d.Type)
	}
	return kept, "", err
}

// wrong refuses a value of another type than the field's.
func (d Declaration) wrong(want string, given any) error {
	return fault.New(fault.Invalid, "%s must be %s, not %s", d.Slug, want, kindOf(given))
}

// kindOf says in words what a JSON value is.
func kindOf(given any) string {
	switch v := given.(type) {
	case string:
		if len(v) > maxQuoted {
			return fmt.Sprintf("a text of %d bytes", len(v))
		}
		return strconv.Quote(v)
	case float64:
		return decimal(v)
	case bool:
		return strconv.FormatBool(v)
	case []any:
		return fmt.Sprintf("a list of %d", len(v))
	default:
		return "an object"
	}
}

func (d Declaration) text(given any) (any, error) {
	text, ok := given.(string)
	if !ok {
		return nil, d.wrong("a text", given)
	}
	limit := MaxValueBytes
	if d.Type == Textarea {
		limit = MaxTextareaBytes
	}
	if len(text) > limit {
		return nil, fault.New(fault.Invalid, "%s has %d bytes; it may have %d", d.Slug, len(text), limit)
	}
	switch d.Type {
	case URL:
		return text, d.address(text)
	case Email:
		if a, err := mail.ParseAddress(text); err != nil || a.Address != text || a.Name != "" {
			return nil, fault.New(fault.Invalid, "%s must be an email address alone, such as ana@example.com, not %s", d.Slug, kindOf(text))
		}
	}
	return text, nil
}

// address refuses what is no absolute URL, and those that would run as a script or show a password when somebody follows them.
func (d Declaration) address(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" || u.Host == "" {
		return fault.New(fault.Invalid, "%s must be an absolute URL such as https://example.com/page, not %s", d.Slug, kindOf(text))
	}
	if slices.Contains([]string{"javascript", "vbscript", "data"}, u.Scheme) {
		return fault.New(fault.Invalid, "%s must be a URL that leads somewhere: %s is a script", d.Slug, u.Scheme)
	}
	if _, has := u.User.Password(); has {
		return fault.New(fault.Invalid, "%s must be a URL without a password in it", d.Slug)
	}
	return nil
}

// exactDigits is how many decimal digits a number keeps however it is written, as float64 does.
const exactDigits = 15

func (d Declaration) number(given any) (any, error) {
	n, ok := given.(float64)
	if !ok || math.IsNaN(n) || math.IsInf(n, 0) {
		return nil, d.wrong("a number", given)
	}
	places := d.places()
	if d.Type == Progress {
		places = MaxPrecision
	}
	text := decimal(n)
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(text, "-"), ".")
	if len(fraction) > places {
		return nil, fault.New(fault.Invalid, "%s takes %s, and %s has %d: nothing is rounded for you", d.Slug, decimals(places), text, len(fraction))
	}
	if len(strings.TrimLeft(whole, "0"))+places > exactDigits {
		return nil, fault.New(fault.Invalid, "%s cannot keep %s exactly: %d digits before the point are the most", d.Slug, text, exactDigits-places)
	}
	least, most := d.bounds()
	if least != nil && n < *least {
		return nil, fault.New(fault.Invalid, "%s must be %s or more, not %s", d.Slug, decimal(*least), text)
	}
	if most != nil && n > *most {
		return nil, fault.New(fault.Invalid, "%s must be %s or less, not %s", d.Slug, decimal(*most), text)
	}
	return n, nil
}

func (d Declaration) bounds() (least, most *float64) {
	least, most = d.Min, d.Max
	if d.Type == Progress {
		nothing, all := 0.0, 100.0
		if least == nil {
			least = &nothing
		}
		if most == nil {
			most = &all
		}
	}
	return least, most
}

// decimal writes a number as people do, never as a power.
func decimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

func decimals(places int) string {
	switch places {
	case 0:
		return "whole numbers"
	case 1:
		return "1 decimal place"
	default:
		return fmt.Sprintf("%d decimal places", places)
	}
}

func (d Declaration) date(given any, zone *time.Location) (any, string, error) {
	want := "a day such as 2026-03-01"
	if d.Time {
		want = "a time such as 2026-03-01T15:00:00Z"
	}
	text, ok := given.(string)
	if !ok {
		return nil, "", d.wrong(want, given)
	}
	if day, err := time.Parse(time.DateOnly, text); err == nil && day.Year() > 0 {
		if d.Time {
			return nil, "", fault.New(fault.Invalid, "%s is a point in time: a day alone does not say which, give %s", d.Slug, want)
		}
		return text, "", nil
	}
	point, err := time.Parse(time.RFC3339, text)
	if err != nil || point.UTC().Year() < 1 || point.UTC().Year() > 9999 {
		return nil, "", d.wrong(want, given)
	}
	if !d.Time {
		day := point.In(zone).Format(time.DateOnly)
		return day, fmt.Sprintf("%s is a day: %s was cut to %s, the day it is at the company", d.Slug, text, day), nil
	}
	if point.Nanosecond() != 0 {
		return nil, "", fault.New(fault.Invalid, "%s is kept to the second, and %s has a part of one: nothing is rounded for you", d.Slug, text)
	}
	return point.UTC().Format(time.RFC3339), "", nil
}

// choice answers the ids of the options that a value names, each once, in the order given.
func (d Declaration) choice(given, before any) (any, error) {
	var wanted []string
	switch v := given.(type) {
	case string:
		wanted = []string{v}
	default:
		list, ok := texts(v)
		if !ok {
			return nil, d.wrong("the slug of an option, or a list of them", given)
		}
		wanted = list
	}
	held, _ := texts(before)
	var ids []string
	for _, text := range wanted {
		o, ok := d.Option(text)
		if !ok {
			return nil, d.noOption(text)
		}
		if o.Archived && !slices.Contains(held, o.ID) {
			return nil, fault.New(fault.Invalid, "%s cannot be %s any more: that option is archived; %s", d.Slug, o.Slug, d.offer())
		}
		if !slices.Contains(ids, o.ID) {
			ids = append(ids, o.ID)
		}
	}
	if len(ids) > 1 && !d.several() {
		return nil, fault.New(fault.Invalid, "%s takes one option, not %d", d.Slug, len(ids))
	}
	return ids, nil
}

// Option finds the option that a text names, by id, slug or name, slug and name in any case. Archived ones come last.
func (d Declaration) Option(text string) (Option, bool) {
	text = strings.TrimSpace(text)
	for _, fits := range []func(Option) bool{
		func(o Option) bool { return o.ID == text },
		func(o Option) bool {
			return !o.Archived && (strings.EqualFold(o.Slug, text) || strings.EqualFold(o.Name, text))
		},
		func(o Option) bool { return strings.EqualFold(o.Slug, text) || strings.EqualFold(o.Name, text) },
	} {
		if at := slices.IndexFunc(d.Options, fits); at >= 0 {
			return d.Options[at], true
		}
	}
	return Option{}, false
}

func (d Declaration) noOption(text string) error {
	var names []string
	for _, o := range d.Options {
		if !o.Archived {
			names = append(names, o.Slug, o.Name)
		}
	}
	if near := nearest.Few(text, names, 1); len(near) > 0 {
		return fault.New(fault.Invalid, "%s has no option %s; did you mean %s?", d.Slug, kindOf(text), near[0])
	}
	return fault.New(fault.Invalid, "%s has no option %s; %s", d.Slug, kindOf(text), d.offer())
}

// offer names what there is to choose from.
func (d Declaration) offer() string {
	var slugs []string
	for _, o := range d.Options {
		if !o.Archived {
			slugs = append(slugs, o.Slug)
		}
	}
	if len(slugs) == 0 {
		return "there is nothing to choose from"
	}
	return "there are " + some(slugs)
}

// one answers what a text names, by a resolver.
func (d Declaration) one(given any, want string, resolve func(string) (string, error)) (any, error) {
	text, ok := given.(string)
	if list, isList := texts(given); isList && len(list) == 1 {
		text, ok = list[0], true
	}
	if !ok {
		return nil, d.wrong(want, given)
	}
	if len(text) > MaxValueBytes {
		return nil, d.wrong(want, given)
	}
	id, err := resolve(text)
	if err != nil {
		return nil, err
	}
	return id, nil
}
