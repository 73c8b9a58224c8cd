package mcp

import (
	"context"
	"time"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/jsonrpc"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/operator/upstream"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/rawjson"
)

const (
	// subscribeWithin bounds the first word to a server about a resource, releaseWithin the last.
	subscribeWithin, releaseWithin = 5 * time.Second, 10 * time.Second
	// grantWithin bounds all that one wish wants: what is not followed by then is not granted.
	grantWithin = 15 * time.Second
)

// watch follows a resource for a client, at the first server that lets it be followed.
func (s *Server) watch(ctx context.Context, f *follower, uri string) *jsonrpc.Error {
	failed := jsonrpc.Errorf(jsonrpc.InvalidParams, "There is no resource %q that can be followed.", uri)
	for _, server := range s.Upstreams.Owners(ctx, uri) {
		if !server.Capabilities.Resources.Subscribe {
			continue
		}
		w := watched{server.Name, uri}
		if f.watches(w) {
			return nil
		}
		if failed = s.hold(ctx, server, w); failed != nil {
			continue
		}
		kept, failed := f.keep(w)
		if !kept {
			s.release(ctx, w)
		}
		return failed
	}
	return failed
}

// turn waits until nobody else asks the server about what is followed at it, so that the last who leaves and the next who comes do
// not cross. A server that is slow to answer is waited for by those who want something of it, and by nobody else.
func (s *Server) turn(ctx context.Context, server string) (over func(), ok bool) {
	s.follow.mu.Lock()
	turn, known := s.follow.turns[server]
	if !known {
		turn = make(chan struct{}, 1)
		s.follow.turns[server] = turn
	}
	s.follow.mu.Unlock()
	select {
	case turn <- struct{}{}:
		return func() { <-turn }, true
	case <-ctx.Done():
		return nil, false
	}
}

// count changes how many follow a resource, and answers how many they are then.
func (s *Server) count(w watched, change int) int {
	s.follow.mu.Lock()
	defer s.follow.mu.Unlock()
	n := s.follow.upstream[w] + change
	s.follow.upstream[w] = n
	if n <= 0 {
		delete(s.follow.upstream, w)
	}
	return n
}

// hold follows a resource upstream, for the first who wants it.
func (s *Server) hold(ctx context.Context, server upstream.Server, w watched) *jsonrpc.Error {
	ctx, cancel := context.WithTimeout(ctx, subscribeWithin)
	defer cancel()
	over, ok := s.turn(ctx, w.server)
	if !ok {
		return jsonrpc.Errorf(jsonrpc.InternalError, "The server `%s` is busy with what others follow.", w.server)
	}
	defer over()
	if s.count(w, 0) == 0 {
		if _, failed := s.Upstreams.Ask(ctx, server, subscription("resources/subscribe", w.uri)); failed != nil {
			return failed
		}
	}
	s.count(w, 1)
	return nil
}

// release lets a resource go upstream when the last who wanted it has gone.
func (s *Server) release(ctx context.Context, w watched) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
	defer cancel()
	over, ok := s.turn(ctx, w.server)
	if ok {
		defer over()
	}
	if s.count(w, -1) > 0 {
		return
	}
	for _, server := range s.Upstreams.Servers(ctx) {
		if server.Name != w.server || !ok {
			continue
		}
		if _, failed := s.Upstreams.Ask(ctx, server, subscription("resources/unsubscribe", w.uri)); failed != nil {
			s.Log.Debug("a resource is still followed", "server", w.server, "error", failed)
		}
	}
}

func subscription(method, uri string) dispatch.Request {
	return dispatch.Request{Method: method, Params: rawjson.Object{}.With("uri", rawjson.Quote(uri)), Timeout: subscribeWithin}
}

// Refollow asks a server that has just become ready for what is followed at it: it began anew and knows of nothing.
func (s *Server) Refollow(ctx context.Context, server string) {
	s.beside(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseWithin)
		defer cancel()
		over, ok := s.turn(ctx, server)
		if !ok {
			s.Log.WarnContext(ctx, "what is followed is not followed any more", "server", server)
			return
		}
		defer over()
		for _, w := range s.watchedAt(server) {
			if _, failed := s.Upstreams.Ask(ctx, upstream.Server{Name: server}, subscription("resources/subscribe", w.uri)); failed != nil {
				s.Log.WarnContext(ctx, "a resource is not followed any more", "server", server, "error", failed)
			}
		}
	})
}

// watchedAt answers what is followed at a server.
func (s *Server) watchedAt(server string) []watched {
	s.follow.mu.Lock()
	defer s.follow.mu.Unlock()
	var all []watched
	for w := range s.follow.upstream {
		if w.server == server {
			all = append(all, w)
		}
	}
	return all
}
