package imports

import (
	"bufio"
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
)

// jiraIssue is an issue as Jira's REST interface answers it, versions 2 and 3.
type jiraIssue struct {
	Key    string                     `json:"key"`
	Self   string                     `json:"self"`
	Fields map[string]json.RawMessage `json:"fields"`
}

type jiraNamed struct {
	Name     string `json:"name"`
	Key      string `json:"key"`
	Category struct {
		Key string `json:"key"`
	} `json:"statusCategory"`
}

type jiraPerson struct {
	Name    string `json:"displayName"`
	Login   string `json:"name"`
	Email   string `json:"emailAddress"`
	Account string `json:"accountId"`
}

type jiraLink struct {
	Type struct {
		Name    string `json:"name"`
		Inward  string `json:"inward"`
		Outward string `json:"outward"`
	} `json:"type"`
	Inward  *jiraNamed `json:"inwardIssue"`
	Outward *jiraNamed `json:"outwardIssue"`
}

type jiraFileLink struct {
	Name    string `json:"filename"`
	Address string `json:"content"`
}

type jiraComments struct {
	Comments []struct {
		Author  jiraPerson      `json:"author"`
		Body    json.RawMessage `json:"body"`
		Created string          `json:"created"`
	} `json:"comments"`
	Total int `json:"total"`
}

// readJiraJSON reads search results (`{"issues": […]}`, one page or several), a list of issues, or one issue after another.
func readJiraJSON(r *bufio.Reader, o Options) iter.Seq2[Record, error] {
	return func(yield func(Record, error) bool) {
		n := 0
		for raw, err := range elements(r, "issues") {
			if err != nil {
				yield(Record{}, fmt.Errorf("after issue %d of the file: %w", n, err))
				return
			}
			n++
			if !yield(jiraRecord(raw, n, o), nil) {
				return
			}
		}
	}
}

func jiraRecord(raw json.RawMessage, n int, o Options) Record {
	var issue jiraIssue
	if err := json.Unmarshal(raw, &issue); err != nil || issue.Key == "" || issue.Fields == nil {
		return Record{Place: fmt.Sprintf("entry %d", n), Problem: "it is no issue of Jira: it needs key and fields"}
	}
	r := Record{Place: issue.Key, Item: &trackerv1.ImportedItem{
		ExternalId: issue.Key, Title: issue.text("summary"), Body: issue.prose("description"), Url: issue.browse(), Labels: issue.list("labels"),
		Reporter: or(issue.person("reporter").Name, issue.person("creator").Name), Points: points(issue.number("customfield_10016")),
		EstimateMinutes: minutes(issue.number("timeoriginalestimate")), Parent: or(issue.named("parent").Key, issue.epic()),
	}}
	i := r.Item
	i.Type = o.kind(&r, issue.named("issuetype").Name)
	status := issue.named("status")
	i.Status = o.status(&r, status.Name, status.Category.Key, issue.named("resolution").Name)
	i.Priority = o.priority(&r, issue.named("priority").Name)
	i.Due = o.day(&r, "duedate", issue.text("duedate"))
	i.CreateTime, i.UpdateTime = o.when(&r, "created", issue.text("created")), o.when(&r, "updated", issue.text("updated"))
	i.DoneTime = o.when(&r, "resolutiondate", issue.text("resolutiondate"))
	facts := r.assignJira(o, issue.person("assignee"))
	facts = append(facts, issue.links(i)...)
	var thread jiraComments
	issue.read("comment", &thread)
	for _, c := range thread.Comments {
		i.Comments = append(i.Comments, &trackerv1.ImportedComment{Author: or(c.Author.Name, c.Author.Login), Body: prose(c.Body), CreateTime: o.when(&r, "a comment's time", c.Created)})
	}
	if missing := thread.Total - len(thread.Comments); missing > 0 {
		r.warn("the file lacks comments that it counts")
	}
	var files []jiraFileLink
	issue.read("attachment", &files)
	for _, f := range files {
		facts = append(facts, fact{"Attachment", f.Name + " " + f.Address})
	}
	for _, name := range []string{"components", "fixVersions", "versions"} {
		if values := issue.names(name); len(values) > 0 {
			facts = append(facts, fact{name, strings.Join(values, ", ")})
		}
	}
	facts = append(facts, fact{"Resolution", issue.named("resolution").Name}, fact{"Environment", issue.prose("environment")})
	if issue.hasCustomFields() {
		r.warn("its custom fields have no names in the file and were left out; a CSV export has them")
	}
	r.fit(facts)
	return r
}

// links answers what the issue is linked with in words, but for what it waits for, which the item takes.
func (i jiraIssue) links(to *trackerv1.ImportedItem) []fact {
	var links []jiraLink
	i.read("issuelinks", &links)
	var facts []fact
	for _, link := range links {
		words, other := link.Type.Inward, link.Inward
		if other == nil {
			words, other = link.Type.Outward, link.Outward
		}
		switch {
		case other == nil || other.Key == "":
		case waits(words) || words == "" && link.Inward != nil && strings.EqualFold(link.Type.Name, "Blocks"):
			to.WaitingOn = append(to.WaitingOn, other.Key)
		default:
			facts = append(facts, fact{or(words, link.Type.Name), other.Key})
		}
	}
	return facts
}

// waits reports whether an issue with a link of these words cannot go on before the other one is done.
func waits(words string) bool {
	switch strings.ToLower(words) {
	case "is blocked by", "depends on", "depends upon", "is dependent on", "requires", "has to be done after":
		return true
	}
	return false
}

// epic answers the epic that an issue of older boards names in the field that Jira makes for it.
func (i jiraIssue) epic() string {
	if key := i.text("customfield_10014"); strings.Contains(key, "-") {
		return key
	}
	return ""
}

func (i jiraIssue) hasCustomFields() bool {
	for name, raw := range i.Fields {
		if strings.HasPrefix(name, "customfield_") && name != "customfield_10014" && name != "customfield_10016" && string(raw) != "null" && string(raw) != "[]" {
			return true
		}
	}
	return false
}

// assignJira tries every name that Jira has for a person.
func (r *Record) assignJira(o Options, p jiraPerson) []fact {
	for _, name := range []string{p.Login, p.Email, p.Account, p.Name} {
		if handle, ok := o.person(name); ok && name != "" {
			r.Item.Assignee = handle
			return nil
		}
	}
	return r.assign(o, githubUser{Login: or(p.Name, p.Login)})
}

func (i jiraIssue) read(field string, into any) {
	if raw := i.Fields[field]; raw != nil {
		_ = json.Unmarshal(raw, into) // a field of another form says nothing that is understood
	}
}

func (i jiraIssue) text(field string) (s string)       { i.read(field, &s); return s }
func (i jiraIssue) list(field string) (l []string)     { i.read(field, &l); return l }
func (i jiraIssue) named(field string) (n jiraNamed)   { i.read(field, &n); return n }
func (i jiraIssue) person(field string) (p jiraPerson) { i.read(field, &p); return p }
func (i jiraIssue) number(field string) string {
	var n json.Number
	i.read(field, &n)
	return n.String()
}
func (i jiraIssue) prose(field string) string { return prose(i.Fields[field]) }

func (i jiraIssue) names(field string) []string {
	var named []jiraNamed
	i.read(field, &named)
	var out []string
	for _, n := range named {
		out = append(out, n.Name)
	}
	return out
}

// browse answers where a person sees the issue.
func (i jiraIssue) browse() string {
	if site, _, ok := strings.Cut(i.Self, "/rest/"); ok {
		return site + "/browse/" + i.Key
	}
	return ""
}
