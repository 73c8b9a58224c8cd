package story

import (
	"context"
	"errors"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
)

// Vendors are the stand-ins for the outside world.
type Vendors struct {
	GitHub *githubdouble.Server
	Slack  *slackdouble.Server
}

// StartVendors starts them on loopback, knowing the story's accounts. The caller closes them.
func StartVendors(ctx context.Context) (*Vendors, error) {
	github, err := githubdouble.Start(ctx, githubdouble.Options{})
	if err != nil {
		return nil, err
	}
	slack, err := slackdouble.Start(ctx, slackdouble.Options{})
	if err != nil {
		return nil, errors.Join(err, github.Close())
	}
	github.Grant(githubToken, githubLogin)
	slack.Install(slackdouble.Bot{Token: slackToken, UserID: slackUser, BotID: "B0OPSLEAD", AppID: "A0OPSLEAD", TeamID: "T0LANTERN"})
	return &Vendors{GitHub: github, Slack: slack}, nil
}

// Close stops them.
func (v *Vendors) Close() error { return errors.Join(v.GitHub.Close(), v.Slack.Close()) }
