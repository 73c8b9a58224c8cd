// Package githubdouble stands in for GitHub: the REST calls that read and
// write comments, served over real HTTP on loopback, and a maker of signed
// webhooks as GitHub sends them.
//
// It is honest where it matters to a client: it checks the token, hides what
// an account may not see behind 404, refuses a body that is too long with 422,
// pages with Link headers, and answers errors in the vendor's form. It makes
// faults happen when told to; see [Server.Mishaps] and package mishap. It
// knows nothing of the services that call it.
package githubdouble

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/bullpenhq/bullpen/doubles/mishap"
)

// Where a comment can stand.
const (
	OnIssue  = "issue"  // an issue's or a pull request's conversation
	OnReview = "review" // a line of a pull request
	OnCommit = "commit"
)

// Comment is a comment that stands somewhere.
type Comment struct {
	ID int64
	// On is OnIssue, OnReview or OnCommit.
	On string
	// Repo is owner/name.
	Repo string
	// Place is the issue's or pull request's number, or the commit's SHA.
	Place string
	// InReplyTo is the first comment of a review thread; 0 elsewhere.
	InReplyTo int64
	Login     string
	Body      string
	CreatedAt time.Time
}

// Options are the circumstances of a Server.
type Options struct {
	// Addr is where to listen; empty means a free port of the loopback.
	Addr string
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Server is a running double. All methods are safe for concurrent use.
type Server struct {
	// Mishaps are the faults to come, by operation: "create" and "list", for
	// comments of every kind.
	Mishaps mishap.Queue

	http     *http.Server
	listener net.Listener
	now      func() time.Time

	mu       sync.Mutex
	logins   map[string]string // by token
	hidden   map[string]bool
	comments []Comment
	changed  chan struct{}
}

// firstID is larger than the ids that payloads in tests have, so that the two
// are not mixed up.
const firstID = 9_000_000_001

// Start starts a double; ctx bounds only the start. The caller closes it.
func Start(ctx context.Context, o Options) (*Server, error) {
	if o.Addr == "" {
		o.Addr = "127.0.0.1:0"
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("start the GitHub double: %w", err)
	}
	s := &Server{
		listener: listener, now: o.Now,
		logins: map[string]string{}, hidden: map[string]bool{}, changed: make(chan struct{}),
	}
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(listener) }() // ErrServerClosed, after Close
	return s, nil
}

// URL is the API's base, without a slash at the end.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() }

// Close stops the double and cuts what is under way.
func (s *Server) Close() error {
	if err := s.http.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Grant makes a token known as an account's.
func (s *Server) Grant(token, login string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins[token] = login
}

// Hide takes a repository out of an account's sight: it answers 404.
func (s *Server) Hide(login, repo string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hidden[strings.ToLower(login+" "+repo)] = true
}

// Say puts somebody's comment on an issue and answers its id.
func (s *Server) Say(repo string, number int, login, body string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.insert(Comment{On: OnIssue, Repo: repo, Place: fmt.Sprint(number), Login: login, Body: body}).ID
}

// Comments answers every comment, oldest first.
func (s *Server) Comments() []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.comments)
}

// Changed answers a channel that is closed at the next comment.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// insert numbers c and keeps it. The caller holds mu.
func (s *Server) insert(c Comment) Comment {
	c.ID = firstID + int64(len(s.comments))
	c.CreatedAt = s.now().UTC().Truncate(time.Second)
	s.comments = append(s.comments, c)
	close(s.changed)
	s.changed = make(chan struct{})
	return c
}

// account answers whose token the call carries. The caller holds mu.
func (s *Server) account(r *http.Request) (string, bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "bearer") && !strings.EqualFold(scheme, "token") {
		return "", false
	}
	login, ok := s.logins[token]
	return login, ok
}
