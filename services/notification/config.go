package notification

import (
	"flag"
	"net/url"
	"time"

	"github.com/bullpenhq/bullpen/libs/config"
)

// Config are the service's settings.
type Config struct {
	// GithubAPIURL and SlackAPIURL are the vendors' APIs.
	GithubAPIURL string
	SlackAPIURL  string
	// WebhookKeep is how long a routed webhook is kept.
	WebhookKeep time.Duration
	// MachineWakes is how many deliveries that no person sent a seat gets in
	// one conversation within MachineWindow.
	MachineWakes  int
	MachineWindow time.Duration
	// NoticeKeep is how long it is known whom a change of a work item was told to.
	NoticeKeep time.Duration
}

// RegisterFlags adds the settings to fs.
func (c *Config) RegisterFlags(prefix string, fs *flag.FlagSet) {
	fs.StringVar(&c.GithubAPIURL, prefix+"github-api-url", "https://api.github.com", "Base URL of GitHub's REST API; another one for GitHub Enterprise.")
	fs.StringVar(&c.SlackAPIURL, prefix+"slack-api-url", "https://slack.com/api/", "Base URL of Slack's Web API.")
	fs.DurationVar(&c.WebhookKeep, prefix+"webhook-keep", 30*day, "How long a routed webhook is kept, body and all; at least 4 days, in which vendors may send it again.")
	fs.IntVar(&c.MachineWakes, prefix+"machine-wakes", 20, "How often programs and agents may wake a seat in one conversation before they are dropped.")
	fs.DurationVar(&c.NoticeKeep, prefix+"notice-keep", 365*day, "How long notices are kept, and what was decided about each change of a work item; 30 to 3650 days.")
	fs.DurationVar(&c.MachineWindow, prefix+"machine-window", 10*time.Minute, "The time in which machine wakes are counted.")
}

const (
	day = 24 * time.Hour

	// minWebhookKeep is more than the three days in which GitHub sends again.
	minWebhookKeep = 4 * day
	minNoticeKeep  = 30 * day
	maxNoticeKeep  = 3650 * day
)

// Validate refuses settings that cannot work.
func (c *Config) Validate() error {
	for flag, value := range map[string]string{"github-api-url": c.GithubAPIURL, "slack-api-url": c.SlackAPIURL} {
		u, err := url.Parse(value)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return config.Invalid("notification."+flag, "must be an http or https URL, not %q", value)
		}
	}
	switch {
	case c.WebhookKeep < minWebhookKeep:
		return config.Invalid("notification.webhook-keep", "must be at least %s, not %s", minWebhookKeep, c.WebhookKeep)
	case c.NoticeKeep < minNoticeKeep || c.NoticeKeep > maxNoticeKeep:
		return config.Invalid("notification.notice-keep", "must be from %s to %s, not %s", minNoticeKeep, maxNoticeKeep, c.NoticeKeep)
	case c.MachineWakes < 1:
		return config.Invalid("notification.machine-wakes", "must be at least 1, not %d", c.MachineWakes)
	case c.MachineWindow <= 0:
		return config.Invalid("notification.machine-window", "must be longer than %s", c.MachineWindow)
	}
	return nil
}
