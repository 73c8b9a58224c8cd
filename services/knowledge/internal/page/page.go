// Package page is the page of the knowledge base: its address, its links and how a hit is previewed.
//
// It is pure. The idea to hold: a title is an address. Two titles that differ in case or in spaces are one address, so that a
// page can be named in a sentence and found again.
package page

import (
	"strings"
	"time"

	"github.com/google/uuid"
	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Reserved containers. They exist in every company; seats read them and do not write them. A company may keep its tool skills in
// another container, which is then reserved too.
const (
	Skills = "TS"
	Root   = "HOME"
)

// RevisionsKept is how many versions of what a page said are kept.
const RevisionsKept = 100

// ReasonTitle: the address is taken.
const ReasonTitle = "PAGE_TITLE_TAKEN"

// Statuses of a page.
const (
	Published = "published"
	Trashed   = "trashed"
)

// Page is something the company knows.
type Page struct {
	ID        uuid.UUID
	Container string
	Parent    *uuid.UUID
	Title     string
	Body      string
	Status    string
	Labels    []string
	Author    string
	Editor    string
	Version   int32
	Revision  int32
	CreatedAt time.Time
	UpdatedAt time.Time
}

// Author is who writes.
type Author struct {
	// Name is a seat's handle or a token's name.
	Name string
	// Kind is agent, human, operator or system.
	Kind string
	// Seat is the handle of the seat it acts as; empty for an operator or the system.
	Seat string
	// Turn is the turn that writes; empty outside one.
	Turn string
}

// Address is what titles are compared by: composed, without case, spaces collapsed.
func Address(title string) string {
	return strings.Join(strings.Fields(cases.Fold().String(norm.NFC.String(title))), " ")
}

// New completes a page that is being written. Agents do not write to a reserved container.
func New(p *Page, by Author, reserved bool, now time.Time) error {
	p.Title = strings.Join(strings.Fields(p.Title), " ")
	if p.Title == "" {
		return fault.New(fault.Invalid, "title must say something").WithField("title")
	}
	if strings.TrimSpace(p.Body) == "" {
		return fault.New(fault.Invalid, "body must say something").WithField("body")
	}
	if by.Kind == "agent" && reserved {
		return fault.New(fault.Forbidden, "container %s is kept by people: write to your own unit's, or ask a person", p.Container).WithField("container")
	}
	p.Status, p.Version, p.Revision = Published, 1, 1
	p.Author, p.Editor = by.Name, by.Name
	p.CreatedAt, p.UpdatedAt = now, now
	return nil
}

// TitleTaken refuses an address that another page has.
func TitleTaken(container, title string) error {
	return fault.New(fault.Exists, "%s has a page called %q already: read it with get_page %s/%s, or choose another title", container, title, container, title).
		WithField("title").WithReason(ReasonTitle)
}
