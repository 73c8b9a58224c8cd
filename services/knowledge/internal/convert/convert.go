// Package convert turns the knowledge base's values into those of its contract, for answers and events alike.
package convert

import (
	"google.golang.org/protobuf/types/known/timestamppb"

	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/page"
	"github.com/bullpenhq/bullpen/services/knowledge/internal/store"
)

// Page answers a page without what it says.
func Page(p *page.Page) *knowledgev1.Page {
	out := &knowledgev1.Page{
		Id:         p.ID.String(),
		Container:  p.Container,
		Title:      p.Title,
		Status:     p.Status,
		Labels:     p.Labels,
		Author:     p.Author,
		Editor:     p.Editor,
		Version:    p.Version,
		CreateTime: timestamppb.New(p.CreatedAt),
		UpdateTime: timestamppb.New(p.UpdatedAt),
	}
	if p.Parent != nil {
		out.Parent = p.Parent.String()
	}
	return out
}

// Links answers names of pages.
func Links(links []store.Link) []*knowledgev1.PageLink {
	out := make([]*knowledgev1.PageLink, 0, len(links))
	for _, l := range links {
		out = append(out, &knowledgev1.PageLink{Id: l.ID.String(), Title: l.Title})
	}
	return out
}

// Revision answers one version of what a page said.
func Revision(r store.Revision) *knowledgev1.PageRevision {
	return &knowledgev1.PageRevision{
		Revision:   r.Number,
		Author:     r.By.Name,
		AuthorKind: r.By.Kind,
		Message:    r.Message,
		TurnId:     r.By.Turn,
		CreateTime: timestamppb.New(r.CreatedAt),
	}
}
