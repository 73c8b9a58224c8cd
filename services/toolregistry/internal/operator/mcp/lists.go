package mcp

import (
	"context"
	"fmt"
	"strings"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/upstream"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// list is one of the lists whose changes a client can hear of, by the capability that declares it.
type list string

const (
	toolList     list = "tools"
	promptList   list = "prompts"
	resourceList list = "resources"
)

func lists() []list { return []list{toolList, promptList, resourceList} }

// wish is the member by which a client asks for it.
func (l list) wish() string { return string(l) + "ListChanged" }

func (l list) notification() string { return "notifications/" + string(l) + "/list_changed" }

// followList makes a client hear of a list of another version.
func (f *follower) followList(l list, version string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.lists[l] = version
}

// learn takes a list's version, and reports whether the client wants to hear that it is another than the one known.
func (f *follower) learn(l list, version string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	known, follows := f.lists[l]
	if !follows || known == version {
		return false
	}
	f.lists[l] = version
	return true
}

// announce tells of lists that differ, whoever knows others. Where nobody follows, nothing is looked at.
func (s *Server) announce(ctx context.Context) {
	followed := s.followed()
	if len(followed) == 0 {
		return
	}
	for _, l := range lists() {
		version := s.versionOf(ctx, l)
		for _, f := range followed {
			if f.learn(l, version) {
				f.put(l.notification(), "", rawjson.Object{})
			}
		}
	}
}

// versionOf answers what changes when a list does. Tools are compared. Prompts and resources are not kept: of them it is the servers
// that have any, and how often one of these spoke of a change.
func (s *Server) versionOf(ctx context.Context, l list) string {
	var kind upstream.Kind
	var b strings.Builder
	switch l {
	case promptList:
		kind = upstream.Prompts
		fmt.Fprintf(&b, "%d", s.promptNews.Load())
	case resourceList:
		kind = upstream.Resources
		fmt.Fprintf(&b, "%d", s.resourceNews.Load())
	default:
		return s.listing(ctx).digest
	}
	for _, server := range s.Upstreams.Servers(ctx) {
		if server.Has(kind) {
			fmt.Fprintf(&b, " %q %q", server.Name, server.Prefix)
		}
	}
	return b.String()
}

// ListsChanged hears that a shared server spoke of other prompts or resources, or that it began anew and may have others. Clients hear
// of many such words in a row once.
func (s *Server) ListsChanged(prompts, resources bool) {
	if prompts {
		s.promptNews.Add(1)
	}
	if resources {
		s.resourceNews.Add(1)
	}
	s.Changed()
}
