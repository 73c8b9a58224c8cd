package session

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

const (
	// maxTools and maxListBytes bound what one server may bring: everything that lists tools carries it.
	maxTools, maxListBytes = 10_000, 16 << 20
	// maxPages and maxEntries bound any list.
	maxPages, maxEntries = 1000, 10000
	// relistMin and relistMax bound how often tools are listed again because their time ran out.
	relistMin, relistMax = time.Minute, 24 * time.Hour
)

// Tool is a tool as the server wrote it in `tools/list`.
type Tool struct {
	Name string
	JSON []byte
}

// pages asks for a list, page after page, until the server names no next one. An empty cursor is a cursor; one that was seen before
// ends the list. ask makes the request of one page, with no cursor for the first; take gets each result, and how far it is.
func (s *Session) pages(method string, ask func(cursor []byte) reply, take func(members []wire.Member) error) (reply, error) {
	var cursor []byte
	seen := map[string]bool{}
	for range maxPages {
		r := ask(cursor)
		if r.failure != nil || r.refusal != nil {
			return r, nil
		}
		members, err := wire.Object(r.result)
		if err != nil {
			return r, fmt.Errorf("its answer to %s is no list", method)
		}
		if err := take(members); err != nil {
			return r, err
		}
		cursor = wire.Get(members, "nextCursor")
		if cursor == nil || string(cursor) == "null" {
			return reply{}, nil
		}
		if seen[string(cursor)] {
			s.options.Log.Warn("server repeats a page of a list; the list ends there", "method", method)
			return reply{}, nil
		}
		seen[string(cursor)] = true
	}
	return reply{}, fmt.Errorf("its answer to %s has more than %d pages", method, maxPages)
}

// Tools lists the server's tools, all pages, in its order. A tool without a name, the second of two with one name, and one that asks
// for headers it must not ask for are left out and logged: the others are not to blame.
func (s *Session) Tools(ctx context.Context) ([]Tool, error) {
	l := listing{session: s, names: map[string]bool{}, bindings: map[string][]binding{}}
	last, err := s.pages(methodTools, func(cursor []byte) reply {
		var params []wire.Member
		if cursor != nil {
			params = []wire.Member{{Name: "cursor", Value: cursor}}
		}
		return s.request(ctx, methodTools, params)
	}, l.page)
	switch {
	case err != nil:
		return nil, err
	case last.failure != nil:
		return nil, fmt.Errorf("its tools could not be listed: %w", last.failure)
	case last.refusal != nil:
		if e := readRefusal(last.refusal); e.Code != codeNoMethod {
			return nil, fmt.Errorf("it refused to list its tools: %s", e.Message)
		} // it has none
	}
	s.bindings.Store(&l.bindings)
	s.keepFor(l.lifetime)
	return l.tools, nil
}

var errTools = fmt.Errorf("it lists more than %d tools or %d MiB of them", maxTools, maxListBytes>>20)

type listing struct {
	session  *Session
	names    map[string]bool
	bindings map[string][]binding
	tools    []Tool
	bytes    int
	// lifetime is the server's word on how long the list holds, the least of all pages; 0 when it said none.
	lifetime time.Duration
}

func (l *listing) page(members []wire.Member) error {
	tools, err := wire.Elements(wire.Get(members, "tools"), maxTools)
	switch {
	case errors.Is(err, wire.ErrMany):
		return errTools
	case err != nil:
		return errors.New("its list of tools is no list of tools")
	}
	if ms, err := strconv.ParseInt(string(wire.Get(members, "ttlMs")), 10, 64); err == nil && ms >= 0 {
		lifetime := bounds(time.Duration(min(ms, relistMax.Milliseconds()))*time.Millisecond, relistMin, relistMax)
		if l.lifetime == 0 || lifetime < l.lifetime {
			l.lifetime = lifetime
		}
	}
	for _, raw := range tools {
		if err := l.add(raw); err != nil {
			return err
		}
	}
	return nil
}

func (l *listing) add(raw []byte) error {
	log := l.session.options.Log
	members, err := wire.Object(raw)
	name, ok := wire.Text(wire.Get(members, "name"))
	if err != nil || !ok || name == "" {
		log.Warn("server lists a tool without a name; it is left out", "position", len(l.tools))
		return nil
	}
	if l.names[name] {
		log.Warn("server lists two tools of one name; the second is left out", "tool", name)
		return nil
	}
	if l.session.modern && l.session.options.HTTP != nil {
		found, err := bindingsOf(members)
		if err != nil {
			log.Warn("server lists a tool that cannot be called over HTTP; it is left out", "tool", name, "reason", err.Error())
			return nil
		}
		if len(found) > 0 {
			l.bindings[name] = found
		}
	}
	l.names[name] = true
	l.tools = append(l.tools, Tool{Name: name, JSON: raw})
	l.bytes += len(raw)
	if len(l.tools) > maxTools || l.bytes > maxListBytes {
		return errTools
	}
	return nil
}

// keepFor says that the tools changed once the server's word on how long they hold runs out, unless it says so by itself.
func (s *Session) keepFor(lifetime time.Duration) {
	if lifetime == 0 || s.greeting.can("tools", "listChanged") {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	if s.relist != nil {
		s.relist.Stop()
	}
	s.relist = time.AfterFunc(lifetime, func() { s.listsChanged(Changes{Tools: true}) })
}

// listed says which member of a list's result holds the entries, and which member of an entry names it.
func listed(method string) (entries, name string) {
	switch method {
	case "prompts/list":
		return "prompts", "name"
	case "resources/list":
		return "resources", "uri"
	case "resources/templates/list":
		return "resourceTemplates", "uriTemplate"
	default:
		return "", ""
	}
}

// whole answers a list as one page: the first one's members, with the entries of all. A single page is answered as it came.
func (s *Session) whole(ctx context.Context, r Request) (Reply, error) {
	entries, name := listed(r.Method)
	m := merger{entries: entries, name: name, names: map[string]bool{}}
	last, err := s.pages(r.Method, func(cursor []byte) reply {
		page := r
		if cursor != nil {
			members, err := wire.Object(orEmpty(r.Params))
			if err != nil {
				return reply{failure: err}
			}
			page.Params = wire.Build(wire.Set(members, "cursor", cursor))
		}
		answer, err := s.exchange(ctx, page)
		m.raw = answer.Result
		return reply{result: answer.Result, refusal: answer.Error, failure: err}
	}, func(members []wire.Member) error { return m.add(r.Method, members) })
	var failed *CallError
	switch {
	case err != nil:
		return Reply{}, &CallError{Sent: true, cause: err}
	case errors.As(last.failure, &failed):
		return Reply{}, failed
	case last.failure != nil:
		return Reply{}, &CallError{cause: last.failure}
	case last.refusal != nil:
		return Reply{Error: last.refusal}, nil
	default:
		return Reply{Result: m.result()}, nil
	}
}

// merger joins the pages of a list.
type merger struct {
	entries, name string
	raw           []byte // the last page
	first         []wire.Member
	all           [][]byte
	names         map[string]bool
	bytes, pages  int
	doubles       bool
}

func (m *merger) add(method string, members []wire.Member) error {
	if m.pages++; m.pages == 1 {
		m.first = members
	}
	page, err := wire.Elements(wire.Get(members, m.entries), maxEntries)
	switch {
	case errors.Is(err, wire.ErrMany):
		return m.tooMany(method)
	case err != nil:
		return fmt.Errorf("its answer to %s has no %s", method, m.entries)
	}
	for _, entry := range page {
		if inside, err := wire.Object(entry); err == nil {
			if id := string(wire.Get(inside, m.name)); m.names[id] {
				m.doubles = true
				continue
			} else if id != "" {
				m.names[id] = true
			}
		}
		m.all, m.bytes = append(m.all, entry), m.bytes+len(entry)
	}
	if len(m.all) > maxEntries || m.bytes > maxListBytes {
		return m.tooMany(method)
	}
	return nil
}

func (m *merger) tooMany(method string) error {
	return fmt.Errorf("its answer to %s has more than %d entries or %d MiB of them", method, maxEntries, maxListBytes>>20)
}

func (m *merger) result() []byte {
	if m.pages == 1 && !m.doubles && wire.Get(m.first, "nextCursor") == nil {
		return m.raw
	}
	array := append([]byte{'['}, bytes.Join(m.all, []byte(","))...)
	return wire.Build(wire.Without(wire.Set(m.first, m.entries, append(array, ']')), "nextCursor"))
}
