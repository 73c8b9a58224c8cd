package upstream

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

// Kind is a sort of thing that servers list, called by the member of the result that holds it.
type Kind string

// Kinds of things.
const (
	Prompts   Kind = "prompts"
	Resources Kind = "resources"
	Templates Kind = "resourceTemplates"
)

// Member holds the things in a list's result.
func (k Kind) Member() string { return string(k) }

// method lists the kind; key is the member that names each.
func (k Kind) method() string {
	switch k {
	case Prompts:
		return "prompts/list"
	case Templates:
		return "resources/templates/list"
	default:
		return "resources/list"
	}
}

func (k Kind) key() string {
	switch k {
	case Prompts:
		return "name"
	case Templates:
		return "uriTemplate"
	default:
		return "uri"
	}
}

// of reports whether a server has the kind.
func (k Kind) of(c Capabilities) bool {
	if k == Prompts {
		return c.Prompts != nil
	}
	return c.Resources != nil
}

// Has reports whether the server has the kind.
func (s Server) Has(k Kind) bool { return k.of(s.Capabilities) }

// Item is a thing of a server.
type Item struct {
	Server Server
	// Key is what it is called here, Raw what its server calls it.
	Key, Raw string
	// JSON is it as its server wrote it, but for the name where that differs.
	JSON json.RawMessage
}

// index remembers whose a thing is.
type index struct {
	items []Item
	at    time.Time
}

// parallel is how many servers are asked at a time.
const parallel = 8

// List asks every server that has the kind, now.
func (u *Upstreams) List(ctx context.Context, kind Kind) ([]Item, *jsonrpc.Error) {
	began := u.Now()
	var asked []Server
	for _, server := range u.Servers(ctx) {
		if server.Has(kind) {
			asked = append(asked, server)
		}
	}
	parts, failures := u.askAll(ctx, kind, asked)
	if len(asked) > 0 && len(failures) == len(asked) {
		return nil, failures[0]
	}
	items := []Item{}
	taken := map[string]bool{}
	for _, part := range parts {
		for _, item := range part {
			if !taken[item.Key] {
				taken[item.Key] = true
				items = append(items, item)
			}
		}
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.indexes[kind] = index{items, began}
	return items, nil
}

// askAll answers each server's part, in the order of the servers, and the failures in the order in which they came.
func (u *Upstreams) askAll(ctx context.Context, kind Kind, asked []Server) ([][]Item, []*jsonrpc.Error) {
	var (
		mu       sync.Mutex
		failures []*jsonrpc.Error
		running  sync.WaitGroup
		parts    = make([][]Item, len(asked))
		room     = make(chan struct{}, parallel)
	)
	for i, server := range asked {
		room <- struct{}{}
		running.Go(func() {
			defer func() { <-room }()
			part, err := u.listOne(ctx, kind, server)
			parts[i] = part
			if err == nil {
				return
			}
			u.Log.WarnContext(ctx, "a server's part of a list is missing", "server", server.Name, "kind", kind, "error", err)
			mu.Lock()
			defer mu.Unlock()
			failures = append(failures, err)
		})
	}
	running.Wait()
	return parts, failures
}

func (u *Upstreams) listOne(ctx context.Context, kind Kind, server Server) ([]Item, *jsonrpc.Error) {
	result, failed := u.Ask(ctx, server, dispatch.Request{Method: kind.method(), Params: rawjson.Object{}, Timeout: min(listTimeout, server.timeout)})
	if failed != nil {
		return nil, failed
	}
	object, err := rawjson.Parse(result)
	if err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The list cannot be read: %s.", err)
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(object.Get(kind.Member()), &rows); err != nil {
		return nil, jsonrpc.Errorf(jsonrpc.InternalError, "The list has no `%s`.", kind)
	}
	var items []Item
	for _, row := range rows {
		object, err := rawjson.Parse(row)
		if err != nil {
			continue // one that cannot be read costs itself only
		}
		raw, ok := object.Text(kind.key())
		if !ok {
			continue
		}
		item := Item{Server: server, Key: raw, Raw: raw, JSON: row}
		if kind == Prompts && server.Prefix != "" {
			item.Key = server.Prefix + raw
			item.JSON = object.With(kind.key(), rawjson.Quote(item.Key)).Bytes()
		}
		items = append(items, item)
	}
	return items, nil
}

// known answers the things of a kind as they were listed lately, or lists them.
func (u *Upstreams) known(ctx context.Context, kind Kind) []Item {
	u.mu.Lock()
	known := u.indexes[kind]
	u.mu.Unlock()
	if known.items != nil && u.Now().Sub(known.at) < believedFor {
		return known.items
	}
	items, failed := u.List(ctx, kind)
	if failed != nil {
		return known.items
	}
	return items
}

// Find answers the thing of a name. One that is not among those listed lately is looked for once more.
func (u *Upstreams) Find(ctx context.Context, kind Kind, key string) (Item, bool) {
	if item, ok := find(u.known(ctx, kind), key); ok {
		return item, true
	}
	items, _ := u.List(ctx, kind)
	return find(items, key)
}

func find(items []Item, key string) (Item, bool) {
	for _, item := range items {
		if item.Key == key {
			return item, true
		}
	}
	return Item{}, false
}
