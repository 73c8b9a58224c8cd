// Package slackapi posts messages to Slack and finds them again, through the
// vendor's usual Go client. It follows no redirects, caps what it reads, never
// retries, and says of each failure what it means for the message.
package slackapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	slackgo "github.com/slack-go/slack"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/notification/internal/outbound"
	"github.com/bullpenhq/bullpen/services/notification/internal/slack"
)

const (
	pageSize = 200
	// maxPages bounds a search; more leaves the message in doubt.
	maxPages = 50
	// maxResponseBytes is more than a page of the longest messages has.
	maxResponseBytes = 32 << 20
	// skew is how far the vendor's clock and the database's may be apart.
	skew = 5 * time.Minute
	// unnamedWait is for a limit that does not say when it ends.
	unnamedWait = 30 * time.Second
	// whoTimeout bounds the question who the bot is; a post stands without it.
	whoTimeout = 2 * time.Second
	// maxKnown bounds how many bots are remembered.
	maxKnown = 1000
)

// Bot is who a token speaks as.
type Bot struct {
	UserID string
	BotID  string
	// Site is the workspace's address, with a slash at the end.
	Site string
}

// Client is Slack as a surface. It is safe for concurrent use.
type Client struct {
	base string
	http *http.Client

	mu   sync.Mutex
	bots map[config.Secret]Bot
}

// New makes a client of the API at base, such as https://slack.com/api/.
func New(base string) *Client {
	return &Client{
		base: strings.TrimRight(base, "/") + "/",
		http: &http.Client{
			Transport:     capped{http.DefaultTransport},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		bots: map[config.Secret]Bot{},
	}
}

// capped bounds what is read of an answer.
type capped struct{ next http.RoundTripper }

func (c capped) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := c.next.RoundTrip(r)
	if err == nil {
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxResponseBytes), res.Body}
	}
	return res, err
}

func (c *Client) api(token config.Secret) *slackgo.Client {
	return slackgo.New(token.Reveal(), slackgo.OptionAPIURL(c.base), slackgo.OptionHTTPClient(c.http))
}

// Post posts a message in its thread.
func (c *Client) Post(ctx context.Context, token config.Secret, m outbound.Message) (outbound.Posted, error) {
	target, err := thread(m.ConversationKey)
	if err != nil {
		return outbound.Posted{}, err
	}
	channel, ts, err := c.api(token).PostMessageContext(ctx, target.Channel,
		slackgo.MsgOptionText(slack.Mrkdwn(m.Body), false),
		slackgo.MsgOptionTS(target.Thread),
		slackgo.MsgOptionDisableLinkUnfurl(),
		slackgo.MsgOptionMetadata(slackgo.SlackMetadata{
			EventType: slack.MarkerType, EventPayload: map[string]any{slack.MarkerField: m.ID.String()},
		}))
	if err != nil {
		return outbound.Posted{}, failure(err)
	}
	return outbound.Posted{VendorID: slack.OutboundID(channel, ts), URL: c.link(ctx, token, target, ts)}, nil
}

// Find reads the thread since the message was queued.
func (c *Client) Find(ctx context.Context, token config.Secret, m outbound.Message) (outbound.Posted, bool, error) {
	target, err := thread(m.ConversationKey)
	if err != nil {
		return outbound.Posted{}, false, err
	}
	since := m.Since.Add(-skew)
	search := &slackgo.GetConversationRepliesParameters{
		ChannelID: target.Channel, Timestamp: target.Thread, IncludeAllMetadata: true, Limit: pageSize,
		Oldest: fmt.Sprintf("%d.%06d", since.Unix(), since.Nanosecond()/1000),
	}
	for range maxPages {
		found, more, next, err := c.api(token).GetConversationRepliesContext(ctx, search)
		if missing(err) {
			return outbound.Posted{}, false, nil
		}
		if err != nil {
			return outbound.Posted{}, false, failure(err)
		}
		for _, f := range found {
			if f.Metadata.EventType == slack.MarkerType && f.Metadata.EventPayload[slack.MarkerField] == m.ID.String() {
				return outbound.Posted{
					VendorID: slack.OutboundID(target.Channel, f.Timestamp), URL: c.link(ctx, token, target, f.Timestamp),
				}, true, nil
			}
		}
		if !more {
			return outbound.Posted{}, false, nil
		}
		search.Cursor = next
	}
	return outbound.Posted{}, false, outbound.NewFailure(outbound.InDoubt, "The thread is too long to be searched.", nil)
}

func thread(key string) (slack.Target, error) {
	target, ok := slack.ParseKey(key)
	if !ok {
		f := outbound.NewFailure(outbound.Refused, "Messages cannot be posted in this conversation.", nil)
		f.Class = fault.Invalid
		return slack.Target{}, f
	}
	return target, nil
}

// link is where a person sees a message; empty while the workspace's address
// is not known.
func (c *Client) link(ctx context.Context, token config.Secret, t slack.Target, ts string) string {
	bot, err := c.Who(ctx, token)
	if err != nil || bot.Site == "" {
		return ""
	}
	return fmt.Sprintf("%sarchives/%s/p%s?thread_ts=%s&cid=%s", bot.Site, t.Channel, strings.Replace(ts, ".", "", 1), t.Thread, t.Channel)
}

// Who answers who a token speaks as; it is asked once a token.
func (c *Client) Who(ctx context.Context, token config.Secret) (Bot, error) {
	c.mu.Lock()
	bot, known := c.bots[token]
	c.mu.Unlock()
	if known {
		return bot, nil
	}
	ctx, cancel := context.WithTimeout(ctx, whoTimeout)
	defer cancel()
	who, err := c.api(token).AuthTestContext(ctx)
	if err != nil {
		return Bot{}, failure(err)
	}
	bot = Bot{UserID: who.UserID, BotID: who.BotID, Site: who.URL}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.bots) >= maxKnown {
		clear(c.bots)
	}
	c.bots[token] = bot
	return bot, nil
}

// missing reports that there is no such thread: nothing of ours stands in it.
func missing(err error) bool {
	refusal, ok := errors.AsType[slackgo.SlackErrorResponse](err)
	return ok && refusal.Err == "thread_not_found"
}

// failure says what an error of the client means for the message.
func failure(err error) error {
	limited := func(wait time.Duration) *outbound.Failure {
		f := outbound.NewFailure(outbound.Limited, "Slack limits the rate of this app.", err)
		f.Wait = wait
		return f
	}
	if l, ok := errors.AsType[*slackgo.RateLimitedError](err); ok {
		return limited(l.RetryAfter)
	}
	if s, ok := errors.AsType[slackgo.StatusCodeError](err); ok {
		if s.Code == http.StatusTooManyRequests {
			return limited(unnamedWait)
		}
		return outbound.NewFailure(outbound.InDoubt, fmt.Sprintf("Slack answers with status %d.", s.Code), err)
	}
	refusal, ok := errors.AsType[slackgo.SlackErrorResponse](err)
	if !ok {
		return err
	}
	refused := func(class fault.Class, detail string) *outbound.Failure {
		f := outbound.NewFailure(outbound.Refused, detail, err)
		f.Class = class
		return f
	}
	switch refusal.Err {
	case "ratelimited", "rate_limited":
		return limited(unnamedWait)
	case "internal_error", "fatal_error", "service_unavailable", "request_timeout":
		return outbound.NewFailure(outbound.InDoubt, "Slack has failed inside.", err)
	case "not_in_channel", "channel_not_found", "is_archived", "restricted_action", "restricted_action_thread_locked",
		"restricted_action_read_only_channel", "cannot_reply_to_message", "not_allowed":
		return refused(fault.Forbidden, "The seat's app may not write in this channel ("+refusal.Err+").")
	case "not_authed", "invalid_auth", "account_inactive", "token_revoked", "token_expired", "missing_scope", "no_permission":
		return refused(fault.Unavailable, "Slack does not accept the seat's token for this ("+refusal.Err+"); an operator has to renew it.")
	case "msg_too_long", "no_text", "invalid_blocks", "msg_blocks_too_long":
		return refused(fault.Invalid, "Slack refuses the text ("+refusal.Err+").")
	default:
		return refused(fault.Unavailable, fmt.Sprintf("Slack refuses the message (%.60q).", refusal.Err))
	}
}
