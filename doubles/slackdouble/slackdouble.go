// Package slackdouble stands in for Slack: a Web API of the few methods that
// the suite calls, served over real HTTP on loopback, and a maker of signed
// events as Slack sends them.
//
// It is honest where it matters to a client: it checks the bearer's token,
// knows who is in which channel, keeps threads, metadata and message times
// apart, answers errors the way Slack does (status 200 and ok false), and
// pages. It makes faults happen when told to; see [Server.Mishaps] and package
// mishap. It knows nothing of the services that call it.
package slackdouble

import (
	"context"
	"encoding/json"
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

// Bot is an installed app with its bot user.
type Bot struct {
	// Token is the bearer's token, such as xoxb-….
	Token string
	// UserID, BotID and AppID are the three identities an app has.
	UserID, BotID, AppID string
	// TeamID is the workspace's.
	TeamID string
}

// Message is a message that stands in a channel.
type Message struct {
	Channel string
	// TS is the message's time, unique in its channel.
	TS string
	// ThreadTS is the root's time; empty for a message outside any thread.
	ThreadTS string
	User     string
	BotID    string
	AppID    string
	Text     string
	// Metadata is what the poster attached, JSON; nil when nothing.
	Metadata json.RawMessage
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
	// Mishaps are the faults to come, by method: "chat.postMessage",
	// "conversations.replies", "conversations.history", "auth.test".
	Mishaps mishap.Queue

	http     *http.Server
	listener net.Listener
	now      func() time.Time

	mu       sync.Mutex
	bots     map[string]Bot // by token
	outside  map[string]bool
	messages []Message
	last     int64 // the last ts given out, microseconds
	changed  chan struct{}
}

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
		return nil, fmt.Errorf("start the Slack double: %w", err)
	}
	s := &Server{
		listener: listener, now: o.Now,
		bots: map[string]Bot{}, outside: map[string]bool{}, changed: make(chan struct{}),
	}
	s.http = &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = s.http.Serve(listener) }() // ErrServerClosed, after Close
	return s, nil
}

// URL is the API's base as clients want it, with a slash at the end.
func (s *Server) URL() string { return "http://" + s.listener.Addr().String() + "/api/" }

// Close stops the double and cuts what is under way.
func (s *Server) Close() error {
	if err := s.http.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Install makes an app's token known.
func (s *Server) Install(b Bot) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bots[b.Token] = b
}

// Expel takes a bot out of a channel: posting there answers not_in_channel.
func (s *Server) Expel(userID, channel string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.outside[userID+"/"+channel] = true
}

// Say puts a person's message into a channel, in a thread if threadTS is not
// empty, and answers its ts.
func (s *Server) Say(channel, threadTS, user, text string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.insert(Message{Channel: channel, ThreadTS: threadTS, User: user, Text: text}).TS
}

// Messages answers everything said, oldest first.
func (s *Server) Messages() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.messages)
}

// Posted answers what bots posted, oldest first.
func (s *Server) Posted() []Message {
	return slices.DeleteFunc(s.Messages(), func(m Message) bool { return m.BotID == "" })
}

// Changed answers a channel that is closed at the next message.
func (s *Server) Changed() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// insert gives m a ts and keeps it. The caller holds mu.
func (s *Server) insert(m Message) Message {
	s.last = max(s.last+1, s.now().UnixMicro())
	m.TS = fmt.Sprintf("%d.%06d", s.last/1e6, s.last%1e6)
	s.messages = append(s.messages, m)
	close(s.changed)
	s.changed = make(chan struct{})
	return m
}

// thread answers a root and its replies, oldest first. The caller holds mu.
func (s *Server) thread(channel, root string) []Message {
	return s.where(func(m Message) bool {
		return m.Channel == channel && (m.TS == root || m.ThreadTS == root)
	})
}

func (s *Server) where(keep func(Message) bool) []Message {
	var found []Message
	for _, m := range s.messages {
		if keep(m) {
			found = append(found, m)
		}
	}
	return found
}

// bearer answers the bot whose token the call carries, in the header or in the
// form as older clients send it. The caller holds mu.
func (s *Server) bearer(r *http.Request) (Bot, string) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		token = r.PostFormValue("token")
	}
	if token == "" {
		return Bot{}, "not_authed"
	}
	bot, ok := s.bots[token]
	if !ok {
		return Bot{}, "invalid_auth"
	}
	return bot, ""
}
