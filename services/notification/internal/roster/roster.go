// Package roster answers who is who: which seat a vendor's account, app or
// team stands for, by one revision of the company.
package roster

import (
	"slices"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

// Seat is a seat as far as routing and posting need it.
type Seat struct {
	Handle string
	// Name is the role's.
	Name string
	// Agent is false for a person's seat.
	Agent bool
	// GithubToken and SlackBotToken are templates, empty for a seat without
	// that account.
	GithubToken   string
	SlackBotToken string
}

// App is a Slack app.
type App struct {
	// Name is the last part of its webhook address.
	Name string
	// Seat is the handle of its seat.
	Seat string
	// SigningSecret is a template.
	SigningSecret string
	// BotUserID may be empty.
	BotUserID string
}

// Roster is immutable and safe for concurrent use. The nil Roster knows nobody.
type Roster struct {
	// Revision is the company's.
	Revision string
	// GithubSecret is the template of the webhook secret, empty when GitHub is
	// not connected.
	GithubSecret string

	seats  map[string]Seat
	apps   map[string]App
	logins map[string]string
	slack  map[string]string
	leads  map[string]string
}

// New reads a company. Nil answers nil: nothing is active.
func New(c *companyv1.Company) *Roster {
	if c == nil {
		return nil
	}
	r := &Roster{
		Revision:     c.GetRevisionId(),
		GithubSecret: c.GetIntegrations().GetGithubWebhookSecret(),
		seats:        map[string]Seat{},
		apps:         map[string]App{},
		logins:       map[string]string{},
		slack:        map[string]string{},
		leads:        map[string]string{},
	}
	for _, s := range c.GetSeats() {
		handle := s.GetHandle()
		r.seats[handle] = Seat{
			Handle: handle, Name: s.GetName(), Agent: s.GetKind() == "agent",
			GithubToken: s.GetGithub().GetToken(), SlackBotToken: s.GetSlack().GetBotToken(),
		}
		for _, login := range []string{s.GetContacts()["github_login"], s.GetGithub().GetLogin()} {
			if login != "" {
				r.logins[strings.ToLower(login)] = handle
			}
		}
		for _, user := range []string{s.GetContacts()["slack_user_id"], s.GetSlack().GetBotUserId()} {
			if user != "" {
				r.slack[user] = handle
			}
		}
		if app := s.GetSlack(); app != nil {
			name := app.GetApp()
			if name == "" {
				name = handle
			}
			r.apps[name] = App{Name: name, Seat: handle, SigningSecret: app.GetSigningSecret(), BotUserID: app.GetBotUserId()}
		}
	}
	for _, u := range c.GetUnits() {
		r.leads[strings.ToLower(u.GetUnitId())] = u.GetLead()
	}
	return r
}

// Seat answers a seat by its handle.
func (r *Roster) Seat(handle string) (Seat, bool) {
	if r == nil {
		return Seat{}, false
	}
	s, ok := r.seats[handle]
	return s, ok
}

// ByLogin answers the handle of the seat with a GitHub account, however it is
// written; a login with [bot] at the end is also found without it.
func (r *Roster) ByLogin(login string) (string, bool) {
	if r == nil {
		return "", false
	}
	login = strings.ToLower(login)
	handle, ok := r.logins[login]
	if !ok {
		handle, ok = r.logins[strings.TrimSuffix(login, "[bot]")]
	}
	return handle, ok
}

// BySlackUser answers the handle of the seat with a Slack user.
func (r *Roster) BySlackUser(user string) (string, bool) {
	if r == nil {
		return "", false
	}
	handle, ok := r.slack[user]
	return handle, ok
}

// ByTeam answers the lead of the unit whose id is a team's slug.
func (r *Roster) ByTeam(slug string) (string, bool) {
	if r == nil {
		return "", false
	}
	lead := r.leads[strings.ToLower(slug)]
	return lead, lead != ""
}

// App answers a Slack app by its name.
func (r *Roster) App(name string) (App, bool) {
	if r == nil {
		return App{}, false
	}
	a, ok := r.apps[name]
	return a, ok
}

// Apps answers the names of all Slack apps, in order.
func (r *Roster) Apps() []string {
	if r == nil {
		return nil
	}
	names := make([]string, 0, len(r.apps))
	for name := range r.apps {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
