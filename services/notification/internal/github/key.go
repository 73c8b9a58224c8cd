package github

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/google/uuid"
)

// Where a comment can be posted.
const (
	OnIssue      = "issue" // an issue, or a pull request's conversation
	OnReview     = "review"
	OnCommit     = "commit"
	OnDiscussion = "discussion"
)

// Target is a conversation as the API knows it.
type Target struct {
	On    string
	Owner string
	Repo  string
	// Number is the issue's, pull request's or discussion's; 0 for a commit.
	Number int
	// Root is the first comment of a review thread.
	Root int64
	// SHA is a commit's.
	SHA string
}

// Key is the target's conversation key:
//
//	github:acme/shop#12                  an issue or pull request
//	github:acme/shop#12/review-345       a review thread, by its first comment
//	github:acme/shop#12/discussion       a discussion
//	github:acme/shop@9fceb02…            a commit
func (t Target) Key() string {
	repo := Source + ":" + t.Owner + "/" + t.Repo
	switch t.On {
	case OnReview:
		return fmt.Sprintf("%s#%d/review-%d", repo, t.Number, t.Root)
	case OnDiscussion:
		return fmt.Sprintf("%s#%d/discussion", repo, t.Number)
	case OnCommit:
		return repo + "@" + t.SHA
	default:
		return fmt.Sprintf("%s#%d", repo, t.Number)
	}
}

// ParseKey is the inverse of [Target.Key]; false when key is none of ours.
func ParseKey(key string) (Target, bool) {
	parts := regexp.MustCompile(`^github:([A-Za-z0-9_.-]+)/([A-Za-z0-9_.-]+)(?:@([0-9a-f]{7,64})|#([0-9]{1,10})(?:/(discussion)|/review-([0-9]{1,19}))?)$`).
		FindStringSubmatch(key)
	if parts == nil {
		return Target{}, false
	}
	t := Target{On: OnIssue, Owner: parts[1], Repo: parts[2], SHA: parts[3]}
	switch {
	case parts[3] != "":
		t.On = OnCommit
	case parts[5] != "":
		t.On = OnDiscussion
	case parts[6] != "":
		t.On = OnReview
	}
	var err error
	if parts[4] != "" {
		if t.Number, err = strconv.Atoi(parts[4]); err != nil {
			return Target{}, false
		}
	}
	if parts[6] != "" {
		if t.Root, err = strconv.ParseInt(parts[6], 10, 64); err != nil {
			return Target{}, false
		}
	}
	return t, true
}

const (
	markerBegin = "<!-- bullpen:message:"
	markerEnd   = " -->"
)

// Marked is a body as it is posted: a comment that nobody sees, on a line of
// its own at the end, says which message of ours it is.
func Marked(body string, message uuid.UUID) string {
	return strings.TrimRight(body, "\n") + "\n\n" + markerBegin + message.String() + markerEnd
}

// MarkerIn answers the id of our message that body ends with. A marker
// anywhere else, such as in a quotation, is not one.
func MarkerIn(body string) (uuid.UUID, bool) {
	body = strings.TrimRight(body, " \r\n\t")
	last := strings.TrimSpace(body[strings.LastIndexByte(body, '\n')+1:])
	id, found := strings.CutPrefix(last, markerBegin)
	id, ended := strings.CutSuffix(id, markerEnd)
	if !found || !ended {
		return uuid.UUID{}, false
	}
	parsed, err := uuid.Parse(id)
	return parsed, err == nil
}

// Unmarked is a body as its author wrote it.
func Unmarked(body string) string {
	if _, ok := MarkerIn(body); !ok {
		return body
	}
	return strings.TrimRight(body[:strings.LastIndex(body, markerBegin)], " \r\n\t")
}

// MaxCommentCharacters is where GitHub refuses a comment.
const MaxCommentCharacters = 65_536
