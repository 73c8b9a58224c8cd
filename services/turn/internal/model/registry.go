package model

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
)

const (
	defaultMaxTokens        = 8192
	defaultTimeout          = 120 * time.Second
	defaultRateLimitResting = time.Hour
	defaultAuthResting      = 5 * time.Minute
)

// Resolve fills templates such as `${LLM_KEY}`; it refuses one that has no value, by name.
type Resolve func(ctx context.Context, templates []string) ([]string, error)

// Registry makes each seat's chain from the company document. It resolves credentials once a revision.
type Registry struct {
	resolve Resolve
	log     *slog.Logger
	now     func() time.Time
	bench   *Bench

	mu       sync.Mutex
	revision string
	pools    map[string]*Pool
	secrets  []string
}

// NewRegistry makes a registry.
func NewRegistry(resolve Resolve, log *slog.Logger, now func() time.Time) *Registry {
	return &Registry{resolve: resolve, log: log, now: now, bench: NewBench()}
}

// Models is what a seat asks with, and the secrets that its texts must not hold.
type Models struct {
	Asker Asker
	// Auxiliary condenses what is too large for a conversation; nil where the seat names no model for that.
	Auxiliary Asker
	// Rests answers how long until somebody may be asked again; 0 when now.
	Rests   func() time.Duration
	Secrets []string
	// Dialects are the vendors' forms that may be asked in, in the order of the chain.
	Dialects []string
}

// For answers the seat's models. It refuses, in words fit for whoever looks after the company, a seat that has none.
func (r *Registry) For(ctx context.Context, c *companyv1.Company, seat *companyv1.Seat) (Models, error) {
	if len(c.GetLlmProviders()) == 0 {
		return Models{}, fault.New(fault.Unavailable, "No model is configured: the company document names none under "+
			"providers.llm. Mail waits until it does.").WithReason("NO_MODEL")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.revision != c.GetRevisionId() {
		r.pools, r.secrets, r.revision = map[string]*Pool{}, nil, c.GetRevisionId()
	}
	var pools []*Pool
	for _, key := range chainOf(c, seat) {
		pool, err := r.pool(ctx, c, key)
		if err != nil {
			return Models{}, err
		}
		pools = append(pools, pool)
	}
	log, handle := r.log, seat.GetHandle()
	fellBack := func(from string, why Kind) {
		log.Warn("the next model provider is asked", "seat", handle, "provider", from, "reason", string(why))
	}
	chain := NewChain(fellBack, pools...)
	models := Models{Asker: chain, Rests: chain.Rests, Dialects: dialectsOf(c, seat)}
	if pools := r.auxiliary(ctx, c, seat); len(pools) > 0 {
		models.Auxiliary = NewChain(fellBack, pools...)
	}
	models.Secrets = append([]string(nil), r.secrets...)
	return models, nil
}

// auxiliary answers the pools of the seat's auxiliary models; the caller holds the lock. One that cannot be had is left out: what
// it would condense is shown whole, and that stops no turn.
func (r *Registry) auxiliary(ctx context.Context, c *companyv1.Company, seat *companyv1.Seat) []*Pool {
	var pools []*Pool
	for _, key := range seat.GetLlm()["auxiliary"].GetProviders() {
		pool, err := r.pool(ctx, c, key)
		if err != nil {
			r.log.Warn("an auxiliary model cannot be asked", "seat", seat.GetHandle(), "provider", key, "reason", sentenceOf(err))
			continue
		}
		pools = append(pools, pool)
	}
	return pools
}

// dialectsOf answers the forms that the seat's providers are asked in, each once.
func dialectsOf(c *companyv1.Company, seat *companyv1.Seat) []string {
	var dialects []string
	for _, key := range chainOf(c, seat) {
		for _, p := range c.GetLlmProviders() {
			dialect := p.GetType()
			if dialect == "openai-compatible" {
				dialect = dialectOpenAI
			}
			if p.GetKey() == key && !slices.Contains(dialects, dialect) {
				dialects = append(dialects, dialect)
			}
		}
	}
	return dialects
}

// chainOf answers the keys of the seat's providers: its own, or the one called default, or the first.
func chainOf(c *companyv1.Company, seat *companyv1.Seat) []string {
	if keys := seat.GetLlm()["default"].GetProviders(); len(keys) > 0 {
		return keys
	}
	for _, p := range c.GetLlmProviders() {
		if p.GetKey() == "default" {
			return []string{"default"}
		}
	}
	return []string{c.GetLlmProviders()[0].GetKey()}
}

// pool answers a provider's pool; the caller holds the lock.
func (r *Registry) pool(ctx context.Context, c *companyv1.Company, key string) (*Pool, error) {
	if pool, made := r.pools[key]; made {
		return pool, nil
	}
	for _, declared := range c.GetLlmProviders() {
		if declared.GetKey() != key {
			continue
		}
		pool, err := r.make(ctx, declared)
		if err != nil {
			return nil, err
		}
		r.pools[key] = pool
		return pool, nil
	}
	return nil, fault.New(fault.Unavailable, "The model provider %q is not in the company document.", key).WithReason("NO_MODEL")
}

func (r *Registry) make(ctx context.Context, p *companyv1.LlmProvider) (*Pool, error) {
	secrets := []string{""}
	if p.GetType() != Scripted && len(p.GetApiKeys()) > 0 {
		var err error
		if secrets, err = r.resolve(ctx, p.GetApiKeys()); err != nil {
			return nil, fault.New(fault.Unavailable, "The API keys of model provider %q cannot be filled in: %s", p.GetKey(),
				sentenceOf(err)).WithReason("NO_MODEL").WithCause(err)
		}
		r.secrets = append(r.secrets, secrets...)
	}
	provider, err := providerOf(p)
	if err != nil {
		return nil, err
	}
	cooldowns := Cooldowns{
		RateLimit: seconds(p.GetRateLimitCooldownSeconds(), defaultRateLimitResting),
		Auth:      seconds(p.GetAuthCooldownSeconds(), defaultAuthResting),
	}
	return NewPool(p.GetKey(), provider, secrets, cooldowns, r.bench, r.now), nil
}

func providerOf(p *companyv1.LlmProvider) (Provider, error) {
	maxTokens := int64(p.GetMaxOutputTokens())
	if maxTokens == 0 {
		maxTokens = defaultMaxTokens
	}
	timeout := seconds(p.GetTimeoutSeconds(), defaultTimeout)
	switch p.GetType() {
	case "anthropic":
		return Anthropic{Model: p.GetModel(), BaseURL: p.GetBaseUrl(), MaxTokens: maxTokens, Timeout: timeout}, nil
	case "openai", "openai-compatible":
		return OpenAI{
			Model: p.GetModel(), BaseURL: p.GetBaseUrl(), MaxTokens: maxTokens, Timeout: timeout,
			Compatible: p.GetType() == "openai-compatible",
		}, nil
	case Scripted:
		script, err := ParseScript(p.GetScenario())
		if err != nil {
			return nil, fault.New(fault.Unavailable, "The scenario of model provider %q cannot be played: %s", p.GetKey(),
				sentenceOf(err)).WithReason("NO_MODEL").WithCause(err)
		}
		return script, nil
	default:
		return nil, fault.New(fault.Unavailable, "The model provider %q is of type %q, which this build does not know.",
			p.GetKey(), p.GetType()).WithReason("NO_MODEL")
	}
}

func seconds(n int32, otherwise time.Duration) time.Duration {
	if n <= 0 {
		return otherwise
	}
	return time.Duration(n) * time.Second
}

func sentenceOf(err error) string {
	if f, ok := fault.As(err); ok {
		return f.Message
	}
	return fmt.Sprintf("%s.", strings.TrimSuffix(err.Error(), "."))
}
