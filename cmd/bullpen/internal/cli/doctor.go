package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/suite"
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/notification/v1/notificationv1connect"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
	"github.com/bullpenhq/bullpen/libs/run"
	"github.com/bullpenhq/bullpen/services/company"
)

// lookPatience bounds one look at one service.
const lookPatience = 5 * time.Second

// finding is one thing that is wrong.
type finding struct {
	Service string `json:"service"`
	What    string `json:"what"`
}

func (a *app) doctor() *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say in words what is wrong with an installation",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			findings := a.diagnose(cmd.Context())
			if a.json {
				if err := a.printJSON(map[string]any{"ok": len(findings) == 0, "findings": findings}); err != nil {
					return err
				}
			} else {
				for _, f := range findings {
					fmt.Fprintf(a.Out, "%s: %s\n", f.Service, indented(f.What))
				}
			}
			switch {
			case len(findings) > 0:
				return errQuiet
			case !a.json:
				fmt.Fprintln(a.Out, "Nothing is wrong.")
			}
			return nil
		},
	}
}

// diagnose asks every service how it is, and then whether work waits for something.
func (a *app) diagnose(ctx context.Context) []finding {
	findings := []finding{}
	add := func(service, format string, args ...any) {
		f := finding{Service: service, What: fmt.Sprintf(format, args...)}
		if !slices.Contains(findings, f) {
			findings = append(findings, f)
		}
	}
	asked := map[string]bool{}
	for _, module := range suite.Modules() {
		base, err := a.address(module.Name)
		if err != nil {
			add(module.Name, "%s", err)
			continue
		}
		if asked[base] {
			continue
		}
		asked[base] = true
		conditions, err := readiness(ctx, base)
		if err != nil {
			add(module.Name, "does not answer on %s: %s", base, err)
			continue
		}
		for _, c := range conditions {
			if c.Service == "" {
				c.Service = module.Name
			}
			// Nobody can do without a company; that there is none is said by the service that has it.
			repeated := c.Name == company.Module.Name && c.Service != company.Module.Name && found(findings, company.Module.Name)
			if !c.OK && !repeated {
				add(c.Service, "%s: %s", c.Name, c.Detail)
			}
		}
	}
	if len(findings) > 0 && len(asked) == 0 {
		return findings[:1] // no installation at all: the services need not say it one by one
	}
	a.models(ctx, add)
	a.waiting(ctx, add)
	return slices.DeleteFunc(findings, func(f finding) bool { return saidBetter(findings, f) })
}

// saidBetter reports whether a finding says that a server is down and another one says why: what anybody may read has no reasons.
func saidBetter(findings []finding, f finding) bool {
	server, ok := strings.CutPrefix(f.What, "mcp server ")
	server, _, _ = strings.Cut(server, ":")
	return ok && slices.ContainsFunc(findings, func(other finding) bool { return strings.HasPrefix(other.What, "MCP server "+server+" is ") })
}

// found reports whether something is wrong with a service.
func found(findings []finding, service string) bool {
	return slices.ContainsFunc(findings, func(f finding) bool { return f.Service == service })
}

// models looks whether the agents of the company have anything to think with. It is said before the first mail waits for it.
func (a *app) models(ctx context.Context, add func(service, format string, args ...any)) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	client, err := a.companyClient()
	if err != nil {
		return
	}
	// What is wrong with reading it is a condition of the service's own.
	answer, err := client.GetCompany(ctx, &companyv1.GetCompanyRequest{})
	if err != nil || len(answer.GetCompany().GetLlmProviders()) > 0 {
		return
	}
	agent := func(s *companyv1.Seat) bool { return s.GetKind() != "human" }
	if slices.ContainsFunc(answer.GetCompany().GetSeats(), agent) {
		add("company", "no model is configured: the document names none under providers.llm, so agents take mail and cannot answer it")
	}
}

// readiness reads /readyz.
func readiness(ctx context.Context, base string) ([]run.ServiceCondition, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/readyz", nil)
	if err != nil {
		return nil, err
	}
	response, err := (&http.Client{Timeout: lookPatience}).Do(request)
	if err != nil {
		return nil, errors.Unwrap(err) // without the address, which is said already
	}
	defer response.Body.Close()
	var answer run.Readiness
	err = json.NewDecoder(response.Body).Decode(&answer)
	return answer.Conditions, err
}

// waiting looks at mail that is held, servers that fail, messages that do not leave and dead letters.
func (a *app) waiting(ctx context.Context, add func(service, format string, args ...any)) {
	ctx, cancel := context.WithTimeout(ctx, lookPatience)
	defer cancel()
	if client, err := a.turnClient(); err != nil {
		add("turn", "%s", err)
	} else if mail, err := client.ListMail(ctx, &turnv1.ListMailRequest{State: "held"}); err != nil {
		add("turn", "%s", sentence(err))
	} else {
		if mail.GetHeldBecause() != "" && len(mail.GetMail()) > 0 {
			add("turn", "mail waits: %s", mail.GetHeldBecause())
		}
		for _, m := range mail.GetMail() {
			add("turn", "mail of %s waits: %s", m.GetSeat(), m.GetReason())
		}
		if again, err := client.ListMail(ctx, &turnv1.ListMailRequest{State: "ready"}); err == nil {
			for _, m := range again.GetMail() {
				if m.GetAttempts() > 0 && m.GetReason() != "" {
					add("turn", "mail of %s from %s failed and is tried again: %s", m.GetSeat(), m.GetConversationKey(), m.GetReason())
				}
			}
		}
		if dead, err := client.ListDeadLetters(ctx, &turnv1.ListDeadLettersRequest{}); err == nil && undriven(dead.GetDeadLetters()) > 0 {
			add("turn", "dead letters that wait: %d; `bullpen dead` shows them", undriven(dead.GetDeadLetters()))
		}
	}
	if client, err := a.registryClient(); err == nil {
		if servers, err := client.ListMcpServers(ctx, &toolregistryv1.ListMcpServersRequest{}); err != nil {
			add("toolregistry", "%s", sentence(err))
		} else {
			for _, s := range servers.GetServers() {
				if s.GetState() == "failing" || s.GetState() == "partly_failing" {
					add("mcphost", "MCP server %s is %s: %s", s.GetServer(), strings.ReplaceAll(s.GetState(), "_", " "), s.GetReason())
				}
			}
		}
		a.undecided(ctx, client, add)
		a.withheld(ctx, client, add)
	}
	if client, err := a.client("notification"); err == nil {
		notifications := notificationv1connect.NewNotificationServiceClient(client)
		for _, state := range []string{"queued", "unknown", "failed"} {
			if list, err := notifications.ListOutbound(ctx, &notificationv1.ListOutboundRequest{State: state}); err == nil {
				for _, m := range list.GetMessages() {
					if state == "queued" && m.GetDetail() == "" {
						continue // nothing keeps it; it leaves in its turn
					}
					add("notification", "an answer of %s to %s is %s: %s", m.GetSeat(), m.GetConversationKey(), state, m.GetDetail())
				}
			}
		}
		if dead, err := notifications.ListDeadLetters(ctx, &notificationv1.ListDeadLettersRequest{}); err == nil && undriven(dead.GetDeadLetters()) > 0 {
			add("notification", "webhooks that could not be processed: %d; `bullpen dead` shows them", undriven(dead.GetDeadLetters()))
		}
	}
}

// undecided looks for calls that wait for a person.
func (a *app) undecided(
	ctx context.Context, client toolregistryv1connect.ToolRegistryServiceClient, add func(service, format string, args ...any),
) {
	answer, err := client.ListApprovals(operator(ctx), &toolregistryv1.ListApprovalsRequest{State: "waiting", Limit: 200})
	if err != nil {
		add("toolregistry", "%s", sentence(err))
		return
	}
	for _, p := range answer.GetApprovals() {
		add("toolregistry", "a call of %s by %s waits for a person until %s: `bullpen approvals show %s`", p.GetTool(), p.GetSeat(),
			moment(p.GetExpireTime()), p.GetApprovalId())
	}
}

// withheld looks for tools that wait until somebody accepts what they are now, and for pages that were meant to be tool skills.
func (a *app) withheld(
	ctx context.Context, client toolregistryv1connect.ToolRegistryServiceClient, add func(service, format string, args ...any),
) {
	if changes, err := client.ListToolChanges(operator(ctx), &toolregistryv1.ListToolChangesRequest{}); err == nil {
		for _, c := range changes.GetChanges() {
			if c.GetHeld() {
				add("toolregistry", "%s of mcp:%s changed and is held: see `bullpen tools changes`, then `bullpen tools accept %s %s`",
					quotedIfOdd(c.GetTool()), c.GetServer(), c.GetServer(), quotedIfOdd(c.GetTool()))
			}
		}
	}
	if skills, err := client.ListToolSkills(operator(ctx), &toolregistryv1.ListToolSkillsRequest{}); err == nil {
		for _, page := range skills.GetRefused() {
			add("toolregistry", "the page %q is no tool skill: %s", page.GetTitle(), page.GetReason())
		}
	}
}

// undriven counts the dead letters that were not taken in since.
func undriven[D interface{ GetRedriveTime() T }, T comparable](letters []D) int {
	var never T
	count := 0
	for _, d := range letters {
		if d.GetRedriveTime() == never {
			count++
		}
	}
	return count
}
