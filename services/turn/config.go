package turn

import (
	"flag"
	"time"

	"github.com/bullpenhq/bullpen/libs/config"
)

// Config is the service's settings.
type Config struct {
	// LeaseTTL is how long a dead worker keeps its seats.
	LeaseTTL time.Duration
	// MaxConcurrent turns in this process.
	MaxConcurrent int
	// DrainTimeout is how long running turns get to end at a stop.
	DrainTimeout time.Duration
	// Poll is how often mail is looked for that came in elsewhere.
	Poll time.Duration

	prefix string
}

// RegisterFlags implements run.Config.
func (c *Config) RegisterFlags(prefix string, fs *flag.FlagSet) {
	c.prefix = prefix
	fs.DurationVar(&c.LeaseTTL, prefix+"lease-ttl", 45*time.Second,
		"How long the seats of a worker that died stay its own; it is renewed three times in that.")
	fs.IntVar(&c.MaxConcurrent, prefix+"max-concurrent", 32, "How many turns run in this process at a time.")
	fs.DurationVar(&c.DrainTimeout, prefix+"drain-timeout", 20*time.Second,
		"How long running turns get to end at a stop, before they stop at their next commit for another worker.")
	fs.DurationVar(&c.Poll, prefix+"poll", 250*time.Millisecond, "How often mail is looked for that another process took in.")
}

// Validate implements run.Config.
func (c *Config) Validate() error {
	switch {
	case c.LeaseTTL < 100*time.Millisecond || c.LeaseTTL > time.Hour:
		return config.Invalid(c.prefix+"lease-ttl", "must be from 100ms to 1h, not %s", c.LeaseTTL)
	case c.MaxConcurrent < 1 || c.MaxConcurrent > 10_000:
		return config.Invalid(c.prefix+"max-concurrent", "must be from 1 to 10000, not %d", c.MaxConcurrent)
	case c.DrainTimeout < 0 || c.DrainTimeout > time.Hour:
		return config.Invalid(c.prefix+"drain-timeout", "must be from 0s to 1h, not %s", c.DrainTimeout)
	case c.Poll < 10*time.Millisecond || c.Poll > time.Minute:
		return config.Invalid(c.prefix+"poll", "must be from 10ms to 1m, not %s", c.Poll)
	default:
		return nil
	}
}
