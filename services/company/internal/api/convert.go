package api

import (
	"time"

	"github.com/google/uuid"
	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/company/internal/document"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
)

func problemToProto(p document.Problem) *companyv1.Problem {
	return &companyv1.Problem{
		Path: p.Path, Line: int32(p.Line), Column: int32(p.Column), Message: p.Message, Kind: p.Kind, Seat: p.Seat, Unit: p.Unit,
	}
}

func revisionToProto(r revision.Revision) *companyv1.Revision {
	out := &companyv1.Revision{
		RevisionId: r.ID.String(), Epoch: r.Epoch, Active: r.Active, CreatedBy: r.By, Summary: r.Summary,
		CreateTime: timestamppb.New(r.CreatedAt),
	}
	if r.ParentID != uuid.Nil {
		out.ParentRevisionId = r.ParentID.String()
	}
	if !r.ActivatedAt.IsZero() {
		out.ActivateTime = timestamppb.New(r.ActivatedAt)
	}
	return out
}

func tokenToProto(k store.Token) *companyv1.Token {
	return &companyv1.Token{
		TokenId: k.ID.String(), Name: k.Name, Seat: k.Seat, Hint: k.Hint, CreateTime: timestamppb.New(k.CreatedAt),
		ExpireTime: timeToProto(k.ExpiresAt), RevokeTime: timeToProto(k.RevokedAt),
	}
}

func timeToProto(t *time.Time) *timestamppb.Timestamp {
	if t == nil {
		return nil
	}
	return timestamppb.New(*t)
}

func companyToProto(c *document.Company, r revision.Revision) *companyv1.Company {
	out := &companyv1.Company{
		RevisionId: r.ID.String(), Epoch: r.Epoch,
		Name: c.Name, Mission: c.Mission, Vision: c.Vision, Timezone: c.Timezone, Policies: c.Policies,
		TurnEngine: &companyv1.TurnEngine{
			MaxToolRounds:        int32(c.TurnEngine.MaxToolRounds),
			DelegationDepthLimit: int32(c.TurnEngine.DelegationDepthLimit),
			ToolTimeoutSeconds:   int32(c.TurnEngine.ToolTimeoutSeconds),
		},
		TrackerBackend: c.Tracker, KnowledgeBackend: c.Knowledge,
		Integrations: &companyv1.Integrations{
			PublicBaseUrl:       c.Integrations.PublicBaseURL,
			GithubWebhookSecret: c.Integrations.GithubWebhookSecret,
			SlackTypingStatus:   c.Integrations.SlackTypingStatus,
		},
		Mail: &companyv1.Mail{
			CoalesceMaxBatch: int32(c.Mail.MaxBatch), CoalesceWindowSeconds: int32(c.Mail.WindowSeconds),
		},
		ToolResults: &companyv1.ToolResults{
			Mode: c.ToolResults.Mode, AuditDays: int32(c.ToolResults.AuditDays),
			SummarizeOverBytes: int32(c.ToolResults.OverBytes), TopItems: int32(c.ToolResults.TopItems),
		},
		LoopGuardIdenticalCalls: int32(c.IdenticalCalls),
		ToolPolicy:              policyToProto(c.Policy),
		SkillVariables:          c.SkillVariables,
		SkillsContainer:         c.SkillsContainer,
	}
	for _, u := range c.Units {
		out.Units = append(out.Units, &companyv1.Unit{
			UnitId: u.ID, Name: u.Name, Type: u.Type, ParentId: u.ParentID, Lead: u.Lead, Purpose: u.Purpose, Goals: u.Goals,
			Channel: u.Channel, Project: u.Project, Space: u.Space,
		})
	}
	for _, s := range c.Seats {
		out.Seats = append(out.Seats, seatToProto(s))
	}
	for _, s := range c.Servers {
		out.McpServers = append(out.McpServers, serverToProto(s))
	}
	for _, p := range c.Providers {
		out.LlmProviders = append(out.LlmProviders, &companyv1.LlmProvider{
			Key: p.Key, Type: p.Type, Model: p.Model, BaseUrl: p.BaseURL, ApiKeys: p.APIKeys,
			TimeoutSeconds:           int32(p.TimeoutSeconds),
			RateLimitCooldownSeconds: int32(p.RateLimitSeconds),
			AuthCooldownSeconds:      int32(p.AuthSeconds),
			MaxOutputTokens:          int32(p.MaxOutputTokens),
			Scenario:                 p.Scenario,
		})
	}
	return out
}

func seatToProto(s document.Seat) *companyv1.Seat {
	out := &companyv1.Seat{
		Handle: s.Handle, Name: s.Name, Kind: s.Kind, UnitId: s.UnitID, Email: s.Email, Goal: s.Goal, Backstory: s.Backstory,
		Responsibilities: s.Responsibilities, BehavioralGuidelines: s.Guidelines, Manages: s.Manages, Contacts: s.Contacts,
		Llm: map[string]*companyv1.ProviderChain{}, McpEnv: map[string]*companyv1.Environment{}, Availability: s.Availability,
	}
	for phase, keys := range s.LLM {
		out.Llm[phase] = &companyv1.ProviderChain{Providers: keys}
	}
	for server, variables := range s.Env {
		out.McpEnv[server] = &companyv1.Environment{Variables: variables}
	}
	if a := s.Slack; a != nil {
		out.Slack = &companyv1.SlackApp{App: a.App, BotToken: a.BotToken, SigningSecret: a.SigningSecret, BotUserId: a.BotUserID}
	}
	if a := s.Github; a != nil {
		out.Github = &companyv1.GithubAccount{Login: a.Login, Token: a.Token}
	}
	return out
}
