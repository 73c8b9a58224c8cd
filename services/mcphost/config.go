package mcphost

import (
	"flag"
	"net/url"
	"time"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/sealed"
)

// Config are the service's settings. What can be said of a server is in the company document.
type Config struct {
	// SeatIdle is how long a seat's own children live without a call or a look at their tools.
	SeatIdle time.Duration
	// MaxChildren is how many instances a node runs at the most, shared ones and sessions over HTTP included.
	MaxChildren int
	// ParallelStarts is how many instances a node starts at a time.
	ParallelStarts int
	// AdvertiseURL is where other nodes reach this one; empty for the process's own address.
	AdvertiseURL string
	// TokenKey seals OAuth tokens: 32 bytes in base64 or hex. Without it they live in memory.
	TokenKey config.Secret
	// ClientDocumentURL is where our OAuth client's metadata document is served, when that is not here.
	ClientDocumentURL string
}

// RegisterFlags adds the settings to fs.
func (c *Config) RegisterFlags(prefix string, fs *flag.FlagSet) {
	fs.DurationVar(&c.SeatIdle, prefix+"seat-idle", 15*time.Minute, "How long a seat's own MCP servers run without being used.")
	fs.IntVar(&c.MaxChildren, prefix+"max-children", 200, "How many MCP servers a node runs at the most; a seat's idle ones make room.")
	fs.IntVar(&c.ParallelStarts, prefix+"parallel-starts", 4, "How many MCP servers a node starts at a time.")
	fs.StringVar(&c.AdvertiseURL, prefix+"advertise-url", "", "Base URL under which other nodes reach this one, such as http://10.0.0.7:8080. Empty for the process's own address.")
	config.SecretVar(fs, &c.TokenKey, prefix+"token-key", "Key that seals the OAuth tokens of MCP servers: 32 bytes in base64 or hex, the same on every node. Without it they live in memory and are lost at a restart.")
	fs.StringVar(&c.ClientDocumentURL, prefix+"client-document-url", "", "Where the metadata document of our OAuth client is served, an https URL. Empty for this service's own, where the company's public_base_url is https.")
}

// Validate refuses settings that cannot work.
func (c *Config) Validate() error {
	switch {
	case c.SeatIdle < time.Second:
		return config.Invalid("mcphost.seat-idle", "must be at least 1s, not %s", c.SeatIdle)
	case c.MaxChildren < 1:
		return config.Invalid("mcphost.max-children", "must be at least 1, not %d", c.MaxChildren)
	case c.ParallelStarts < 1:
		return config.Invalid("mcphost.parallel-starts", "must be at least 1, not %d", c.ParallelStarts)
	}
	if u, err := url.Parse(c.AdvertiseURL); c.AdvertiseURL != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "http" && u.Scheme != "https") {
		return config.Invalid("mcphost.advertise-url", "must be an http or https URL without a user")
	}
	if u, err := url.Parse(c.ClientDocumentURL); c.ClientDocumentURL != "" && (err != nil || u.Host == "" || u.User != nil || u.Scheme != "https" || u.Path == "" || u.Path == "/") {
		return config.Invalid("mcphost.client-document-url", "must be an https URL with a path")
	}
	if c.TokenKey != "" {
		if _, err := sealed.NewBox(c.TokenKey); err != nil {
			return config.Invalid("mcphost.token-key", "%v", err)
		}
	}
	return nil
}
