package githubdouble

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/bullpenhq/bullpen/doubles/mishap"
)

const (
	// maxRequestBytes is more than any honest call has.
	maxRequestBytes = 1 << 20
	// maxBodyCharacters is where GitHub refuses a comment.
	maxBodyCharacters = 65_536
	defaultPage       = 30
	maxPage           = 100
)

// object is a JSON object in the making.
type object map[string]any

func (s *Server) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /user", s.call("user", func(_ *http.Request, login string, _ []byte) mishap.Answer {
		return answer(http.StatusOK, account(login))
	}))
	for on, path := range map[string]string{
		OnIssue:  "/repos/{owner}/{repo}/issues/{place}/comments",
		OnReview: "/repos/{owner}/{repo}/pulls/{place}/comments",
		OnCommit: "/repos/{owner}/{repo}/commits/{place}/comments",
	} {
		mux.HandleFunc("GET "+path, s.call("list", s.list(on)))
		if on != OnReview {
			mux.HandleFunc("POST "+path, s.call("create", s.create(on)))
		}
	}
	mux.HandleFunc("POST /repos/{owner}/{repo}/pulls/{place}/comments/{root}/replies", s.call("create", s.create(OnReview)))
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.Mishaps.Serve("unknown", w, r, notFound)
	})
	return mux
}

// call reads the whole request, settles who asks, and has it answered under the lock.
func (s *Server) call(operation string, act func(r *http.Request, login string, body []byte) mishap.Answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequestBytes))
		if err != nil {
			http.Error(w, "the body cannot be read", http.StatusBadRequest)
			return
		}
		s.Mishaps.Serve(operation, w, r, func() mishap.Answer {
			s.mu.Lock()
			defer s.mu.Unlock()
			login, known := s.account(r)
			if !known {
				return failed(http.StatusUnauthorized, "Bad credentials")
			}
			if s.hidden[strings.ToLower(login+" "+repo(r))] {
				return notFound()
			}
			return act(r, login, body)
		})
	}
}

func repo(r *http.Request) string { return r.PathValue("owner") + "/" + r.PathValue("repo") }

func (s *Server) create(on string) func(r *http.Request, login string, body []byte) mishap.Answer {
	return func(r *http.Request, login string, body []byte) mishap.Answer {
		var wanted struct {
			Body *string `json:"body"`
		}
		if err := json.Unmarshal(body, &wanted); err != nil {
			return failed(http.StatusBadRequest, "Problems parsing JSON")
		}
		switch {
		case wanted.Body == nil || strings.TrimSpace(*wanted.Body) == "":
			return failed(http.StatusUnprocessableEntity, "Validation Failed")
		case utf8.RuneCountInString(*wanted.Body) > maxBodyCharacters:
			return failed(http.StatusUnprocessableEntity, "Validation Failed: body is too long (maximum is 65536 characters)")
		}
		c := Comment{On: on, Repo: repo(r), Place: r.PathValue("place"), Login: login, Body: *wanted.Body}
		if on == OnReview {
			root, err := strconv.ParseInt(r.PathValue("root"), 10, 64)
			if err != nil {
				return notFound()
			}
			c.InReplyTo = root
		}
		return answer(http.StatusCreated, s.wire(s.insert(c)))
	}
}

func (s *Server) list(on string) func(r *http.Request, login string, body []byte) mishap.Answer {
	return func(r *http.Request, _ string, _ []byte) mishap.Answer {
		query := r.URL.Query()
		since, _ := time.Parse(time.RFC3339, query.Get("since"))
		var found []object
		for _, c := range s.comments {
			here := c.On == on && strings.EqualFold(c.Repo, repo(r)) && c.Place == r.PathValue("place")
			if here && !c.CreatedAt.Before(since) {
				found = append(found, s.wire(c))
			}
		}
		size, _ := strconv.Atoi(query.Get("per_page"))
		if size <= 0 {
			size = defaultPage
		}
		size = min(size, maxPage)
		page, _ := strconv.Atoi(query.Get("page"))
		page = max(page, 1)
		from := min((page-1)*size, len(found))
		to := min(from+size, len(found))
		a := answer(http.StatusOK, append([]object{}, found[from:to]...))
		if to < len(found) {
			query.Set("page", strconv.Itoa(page+1))
			a.Header.Set("Link", fmt.Sprintf(`<%s%s?%s>; rel="next"`, s.URL(), r.URL.EscapedPath(), query.Encode()))
		}
		return a
	}
}

func (s *Server) wire(c Comment) object {
	page := map[string]string{
		OnIssue:  fmt.Sprintf("issues/%s#issuecomment-%d", c.Place, c.ID),
		OnReview: fmt.Sprintf("pull/%s#discussion_r%d", c.Place, c.ID),
		OnCommit: fmt.Sprintf("commit/%s#commitcomment-%d", c.Place, c.ID),
	}[c.On]
	o := object{
		"id": c.ID, "body": c.Body, "user": account(c.Login),
		"html_url":   "https://github.com/" + c.Repo + "/" + page,
		"created_at": c.CreatedAt.Format(time.RFC3339), "updated_at": c.CreatedAt.Format(time.RFC3339),
	}
	if c.InReplyTo != 0 {
		o["in_reply_to_id"] = c.InReplyTo
	}
	return o
}

func account(login string) object {
	kind := "User"
	if strings.HasSuffix(login, "[bot]") {
		kind = "Bot"
	}
	return object{"login": login, "id": accountID(login), "type": kind}
}

// accountID makes an account's number from its login, the same every time.
func accountID(login string) int64 {
	id := int64(7)
	for _, c := range strings.ToLower(login) {
		id = (id*31 + int64(c)) % 1_000_003
	}
	return id
}

func answer(status int, value any) mishap.Answer {
	body, err := json.Marshal(value)
	if err != nil {
		return mishap.Answer{Status: http.StatusInternalServerError}
	}
	return mishap.Answer{
		Status: status,
		Header: http.Header{"Content-Type": {"application/json; charset=utf-8"}},
		Body:   body,
	}
}

func failed(status int, message string) mishap.Answer {
	return answer(status, object{
		"message": message, "documentation_url": "https://docs.github.com/rest", "status": strconv.Itoa(status),
	})
}

func notFound() mishap.Answer { return failed(http.StatusNotFound, "Not Found") }

// SecondaryLimit makes a call fail as too quick after others, with Retry-After
// in whole seconds.
func SecondaryLimit(after time.Duration) mishap.Mishap {
	a := failed(http.StatusForbidden, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.")
	a.Header.Set("Retry-After", strconv.Itoa(int(after/time.Second)))
	return mishap.Mishap{Answer: a}
}

// PrimaryLimit makes a call fail as over the hour's allowance, which is
// renewed at reset.
func PrimaryLimit(reset time.Time) mishap.Mishap {
	a := failed(http.StatusForbidden, "API rate limit exceeded for user ID 1.")
	a.Header.Set("X-RateLimit-Remaining", "0")
	a.Header.Set("X-RateLimit-Reset", strconv.FormatInt(reset.Unix(), 10))
	return mishap.Mishap{Answer: a}
}

// RateLimited makes a call fail with status 429 and Retry-After in whole
// seconds.
func RateLimited(after time.Duration) mishap.Mishap {
	m := SecondaryLimit(after)
	m.Answer.Status = http.StatusTooManyRequests
	return m
}
