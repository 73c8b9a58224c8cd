package imports

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// githubUser is somebody: an object, or a name alone.
type githubUser struct{ Login string }

// UnmarshalJSON implements [json.Unmarshaler].
func (u *githubUser) UnmarshalJSON(raw []byte) error {
	var object struct {
		Login string `json:"login"`
		Name  string `json:"name"`
	}
	if json.Unmarshal(raw, &object) == nil {
		u.Login = or(object.Login, object.Name)
		return nil
	}
	_ = json.Unmarshal(raw, &u.Login) // anything else is nobody
	return nil
}

// githubNumber is a number, or its digits as a text.
type githubNumber int64

// UnmarshalJSON implements [json.Unmarshaler].
func (n *githubNumber) UnmarshalJSON(raw []byte) error {
	var number json.Number
	if json.Unmarshal(raw, &number) != nil {
		return fmt.Errorf("number is none: %.40s", raw)
	}
	whole, err := number.Int64()
	if err != nil && number != "" {
		return fmt.Errorf("number is none: %.40s", raw)
	}
	*n = githubNumber(whole)
	return nil
}

// githubList is a list, or a connection of the GraphQL interface, which has it under nodes. Anything else is an empty one.
type githubList[T any] []T

// UnmarshalJSON implements [json.Unmarshaler].
func (l *githubList[T]) UnmarshalJSON(raw []byte) error {
	var connection struct {
		Nodes []T `json:"nodes"`
	}
	if json.Unmarshal(raw, (*[]T)(l)) != nil && json.Unmarshal(raw, &connection) == nil {
		*l = connection.Nodes
	}
	return nil
}

// githubNamed is a label or a type: an object with a name, or the name alone.
type githubNamed string

// UnmarshalJSON implements [json.Unmarshaler].
func (n *githubNamed) UnmarshalJSON(raw []byte) error {
	var object struct {
		Name string `json:"name"`
	}
	var name string
	if json.Unmarshal(raw, &object) == nil {
		name = object.Name
	} else {
		_ = json.Unmarshal(raw, &name) // anything else has no name
	}
	*n = githubNamed(name)
	return nil
}

// githubMilestone is an object, or its title alone.
type githubMilestone struct{ Title string }

// UnmarshalJSON implements [json.Unmarshaler].
func (m *githubMilestone) UnmarshalJSON(raw []byte) error {
	var object struct {
		Title string `json:"title"`
	}
	if json.Unmarshal(raw, &object) == nil {
		m.Title = object.Title
		return nil
	}
	_ = json.Unmarshal(raw, &m.Title) // anything else has no title
	return nil
}

// githubComments are the comments themselves, or how many there are, which brings none.
type githubComments struct {
	list  githubList[githubComment]
	count int
}

// githubComment is a comment, or a review of a pull request, which has more of them below it.
type githubComment struct {
	Body      string                    `json:"body"`
	User      githubUser                `json:"user"`
	Author    githubUser                `json:"author"`
	CreatedAt string                    `json:"created_at"`
	Created   string                    `json:"createdAt"`
	Submitted string                    `json:"submittedAt"`
	Below     githubList[githubComment] `json:"comments"`
}

func (c githubComment) by() string { return or(c.User.Login, c.Author.Login) }

func (c githubComment) at() string { return or(or(c.CreatedAt, c.Created), c.Submitted) }

// UnmarshalJSON implements [json.Unmarshaler].
func (c *githubComments) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &c.count) == nil {
		return nil
	}
	return c.list.UnmarshalJSON(raw)
}

// repository answers `owner/name` of the address of an issue or a repository, and nothing when it is no such address.
func repository(address string) string {
	_, path, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch n := len(parts); {
	case n >= 5 && (parts[n-2] == "issues" || parts[n-2] == "pull" || parts[n-2] == "pulls"):
		return parts[n-4] + "/" + parts[n-3]
	case n >= 4 && parts[n-3] == "repos":
		return parts[n-2] + "/" + parts[n-1]
	}
	return ""
}

// numberAt answers the number of the issue at an address; 0 when it is none's.
func numberAt(address string) githubNumber {
	if repository(address) == "" {
		return 0
	}
	number, err := strconv.ParseInt(address[strings.LastIndexByte(address, '/')+1:], 10, 64)
	if err != nil {
		return 0
	}
	return githubNumber(number)
}
