package notification

import (
	"context"

	"github.com/bullpenhq/bullpen/libs/run"
)

// Ready says whether webhooks can be taken. Nothing blocks: until a company is
// active vendors are told to send again, and what was taken is kept.
func (s *Service) Ready(ctx context.Context) []run.Condition {
	r, loaded := s.company.Current()
	if !loaded {
		return []run.Condition{{Name: "company", Blocking: true, Detail: "The company service has not answered yet: webhooks are answered 503 until it does."}}
	}
	if r == nil {
		return []run.Condition{{Name: "company", Detail: "No company is active: webhooks are answered 503 until one is."}}
	}
	conditions := []run.Condition{{Name: "company", OK: true, Detail: "revision " + r.Revision}}
	if r.GithubSecret != "" {
		conditions = append(conditions, s.secretCondition(ctx, "github webhooks", "`integrations.github.webhook_secret`", r.Revision, r.GithubSecret))
	}
	for _, name := range r.Apps() {
		if app, ok := r.App(name); ok {
			conditions = append(conditions, s.secretCondition(ctx, "slack app "+name, "`integrations.slack.signing_secret` of its role", r.Revision, app.SigningSecret))
		}
	}
	return conditions
}

// secretCondition says where the secret is named, and not its name: anybody may read this.
func (s *Service) secretCondition(ctx context.Context, name, field, revision, template string) run.Condition {
	if _, err := s.secrets.Resolve(ctx, revision, template); err != nil {
		return run.Condition{Name: name, Detail: "The secret cannot be resolved: webhooks are answered 503. Set the variable that " + field +
			" names, or seal a value under its name."}
	}
	return run.Condition{Name: name, OK: true}
}
