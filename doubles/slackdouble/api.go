package slackdouble

import (
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/bullpenhq/bullpen/doubles/mishap"
)

const (
	// maxRequestBytes is more than any honest call has.
	maxRequestBytes = 1 << 20
	// maxTextCharacters is where Slack refuses a text.
	maxTextCharacters = 40_000
	// maxPage is the largest page of a listing.
	maxPage = 1000
)

// object is a JSON object in the making.
type object map[string]any

func (s *Server) handler() http.Handler {
	methods := map[string]func(r *http.Request, b Bot) object{
		"auth.test":             s.authTest,
		"chat.postMessage":      s.postMessage,
		"conversations.replies": s.replies,
		"conversations.history": s.history,
	}
	mux := http.NewServeMux()
	for name, method := range methods {
		mux.HandleFunc("/api/"+name, func(w http.ResponseWriter, r *http.Request) {
			r.Body = http.MaxBytesReader(w, r.Body, maxRequestBytes)
			if err := r.ParseForm(); err != nil {
				http.Error(w, "the form cannot be read", http.StatusBadRequest)
				return
			}
			s.Mishaps.Serve(name, w, r, func() mishap.Answer {
				s.mu.Lock()
				defer s.mu.Unlock()
				bot, refused := s.bearer(r)
				if refused != "" {
					return answer(failed(refused))
				}
				return answer(method(r, bot))
			})
		})
	}
	mux.HandleFunc("/api/", func(w http.ResponseWriter, r *http.Request) {
		s.Mishaps.Serve("unknown", w, r, func() mishap.Answer { return answer(failed("unknown_method")) })
	})
	return mux
}

func answer(o object) mishap.Answer {
	body, err := json.Marshal(o)
	if err != nil {
		return mishap.Answer{Status: http.StatusInternalServerError}
	}
	return mishap.Answer{
		Status: http.StatusOK,
		Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
		Body:   body,
	}
}

func failed(code string) object { return object{"ok": false, "error": code} }

// Refused makes a call fail with one of Slack's own error words, such as
// channel_not_found.
func Refused(code string) mishap.Mishap { return mishap.Mishap{Answer: answer(failed(code))} }

// RateLimited makes a call fail as one too many, to be tried again after some
// whole seconds.
func RateLimited(after time.Duration) mishap.Mishap {
	m := Refused("ratelimited")
	m.Answer.Status = http.StatusTooManyRequests
	m.Answer.Header.Set("Retry-After", strconv.Itoa(int(after/time.Second)))
	return m
}

func (s *Server) authTest(_ *http.Request, b Bot) object {
	return object{
		"ok": true, "url": "https://acme.slack.com/", "team": "Acme", "team_id": b.TeamID,
		"user": "bot", "user_id": b.UserID, "bot_id": b.BotID,
	}
}

func (s *Server) postMessage(r *http.Request, b Bot) object {
	channel, text := r.PostFormValue("channel"), r.PostFormValue("text")
	metadata := json.RawMessage(r.PostFormValue("metadata"))
	switch {
	case channel == "":
		return failed("channel_not_found")
	case s.outside[b.UserID+"/"+channel]:
		return failed("not_in_channel")
	case text == "" && r.PostFormValue("blocks") == "":
		return failed("no_text")
	case utf8.RuneCountInString(text) > maxTextCharacters:
		return failed("msg_too_long")
	case len(metadata) > 0 && !json.Valid(metadata):
		return failed("invalid_metadata_format")
	}
	root := r.PostFormValue("thread_ts")
	if root != "" && !slices.ContainsFunc(s.thread(channel, root), func(m Message) bool { return m.TS == root }) {
		// Slack takes any ts for a thread. A person's message that the double was never told of is one it has.
		s.messages = append(s.messages, Message{Channel: channel, TS: root, User: "U0PERSON"})
	}
	m := s.insert(Message{
		Channel: channel, ThreadTS: root, User: b.UserID, BotID: b.BotID, AppID: b.AppID, Text: text, Metadata: metadata,
	})
	return object{"ok": true, "channel": channel, "ts": m.TS, "message": wire(m, false)}
}

// replies answers a thread, its root first.
func (s *Server) replies(r *http.Request, _ Bot) object {
	found := s.thread(r.FormValue("channel"), r.FormValue("ts"))
	if len(found) == 0 {
		return failed("thread_not_found")
	}
	return page(r, found, 0)
}

// history answers what stands in a channel outside threads, newest first.
func (s *Server) history(r *http.Request, _ Bot) object {
	found := s.where(func(m Message) bool { return m.Channel == r.FormValue("channel") && m.ThreadTS == "" })
	slices.Reverse(found)
	return page(r, found, 100)
}

// page cuts one page out of the messages that are in the wanted time. The
// cursor is the index to go on from.
func page(r *http.Request, found []Message, otherwise int) object {
	oldest, latest := r.FormValue("oldest"), r.FormValue("latest")
	inclusive := r.FormValue("inclusive") == "1" || r.FormValue("inclusive") == "true"
	found = slices.DeleteFunc(slices.Clone(found), func(m Message) bool {
		if inclusive && (m.TS == oldest || m.TS == latest) {
			return false
		}
		return oldest != "" && !after(m.TS, oldest) || latest != "" && !after(latest, m.TS)
	})
	limit, _ := strconv.Atoi(r.FormValue("limit"))
	if limit <= 0 {
		limit = max(otherwise, 1)
		if otherwise == 0 {
			limit = maxPage
		}
	}
	limit = min(limit, maxPage)
	from, _ := strconv.Atoi(r.FormValue("cursor"))
	from = min(max(from, 0), len(found))
	to := min(from+limit, len(found))
	next := ""
	if to < len(found) {
		next = strconv.Itoa(to)
	}
	withMetadata := r.FormValue("include_all_metadata") == "1" || r.FormValue("include_all_metadata") == "true"
	shown := make([]object, 0, to-from)
	for _, m := range found[from:to] {
		shown = append(shown, wire(m, withMetadata))
	}
	return object{
		"ok": true, "messages": shown, "has_more": next != "",
		"response_metadata": object{"next_cursor": next},
	}
}

// after compares two times. They have one length until the year 2286.
func after(ts, other string) bool { return ts > other }

func wire(m Message, withMetadata bool) object {
	o := object{"type": "message", "ts": m.TS, "user": m.User, "text": m.Text}
	if m.ThreadTS != "" {
		o["thread_ts"] = m.ThreadTS
	}
	if m.BotID != "" {
		o["bot_id"], o["app_id"] = m.BotID, m.AppID
	}
	if withMetadata && len(m.Metadata) > 0 {
		o["metadata"] = m.Metadata
	}
	return o
}
