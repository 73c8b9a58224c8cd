package slackdouble

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/doubles/signed"
)

// Happening is what an event tells of. Fields that are left empty get what a
// small workspace would have.
type Happening struct {
	// Type is app_mention, message (in a channel), im (a direct message),
	// message_changed, or url_verification.
	Type string
	// EventID tells events apart; the same one again is a retry. Empty makes
	// one from Type, Channel and TS.
	EventID string
	TeamID  string
	AppID   string
	// BotUserID is the user of the app that hears of it.
	BotUserID string
	Channel   string
	// TS is the message's time; ThreadTS its root, empty outside threads.
	TS, ThreadTS string
	User         string
	Text         string
	// FromBot and FromApp are set when a program posted it.
	FromBot, FromApp string
	// Metadata is what a program attached to it.
	Metadata json.RawMessage
	// Blocks are the message's blocks, JSON; nil for none.
	Blocks json.RawMessage
	// EditedTS and PreviousText belong to an edit.
	EditedTS, PreviousText string
	// Challenge belongs to url_verification.
	Challenge string
}

// Event makes a happening into the request that Slack would send, signed with
// an app's signing secret at a time.
func Event(secret string, at time.Time, h Happening) signed.Webhook {
	body, err := json.Marshal(envelope(h.filled(at), at))
	if err != nil {
		panic(fmt.Errorf("slackdouble: metadata or blocks are no JSON: %w", err)) // the caller's literal is wrong
	}
	return Sign(secret, at, body)
}

// Sign makes any body into a request as Slack signs it.
func Sign(secret string, at time.Time, body []byte) signed.Webhook {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(secret))
	fmt.Fprintf(mac, "v0:%s:%s", stamp, body)
	header := http.Header{}
	header.Set("Content-Type", "application/json")
	header.Set("User-Agent", "Slackbot 1.0 (+https://api.slack.com/robots)")
	header.Set("X-Slack-Request-Timestamp", stamp)
	header.Set("X-Slack-Signature", "v0="+hex.EncodeToString(mac.Sum(nil)))
	return signed.Webhook{Header: header, Body: body}
}

// Retry is the same event sent again, for the nth time.
func Retry(w signed.Webhook, n int, reason string) signed.Webhook {
	return w.With("X-Slack-Retry-Num", strconv.Itoa(n)).With("X-Slack-Retry-Reason", reason)
}

// TS is a message time as Slack writes it.
func TS(at time.Time) string { return fmt.Sprintf("%d.%06d", at.Unix(), at.Nanosecond()/1000) }

func (h Happening) filled(at time.Time) Happening {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&h.Type, "app_mention")
	set(&h.TeamID, "T0ACME")
	set(&h.AppID, "A0BOT")
	set(&h.BotUserID, "U0BOT")
	set(&h.TS, TS(at))
	set(&h.Channel, map[bool]string{true: "D0DIRECT", false: "C0GENERAL"}[h.Type == "im"])
	if h.FromBot == "" {
		set(&h.User, "U0PERSON")
	}
	set(&h.EventID, "Ev"+strings.NewReplacer(".", "", "_", "").Replace(h.Type+h.Channel+h.TS+h.EditedTS))
	return h
}

func envelope(h Happening, at time.Time) object {
	if h.Type == "url_verification" {
		return object{"type": "url_verification", "token": "deprecated", "challenge": h.Challenge}
	}
	return object{
		"token": "deprecated", "team_id": h.TeamID, "api_app_id": h.AppID, "type": "event_callback",
		"event_id": h.EventID, "event_time": at.Unix(), "event": event(h), "is_ext_shared_channel": false,
		"event_context": "4-" + h.EventID,
		"authorizations": []object{{
			"enterprise_id": nil, "team_id": h.TeamID, "user_id": h.BotUserID, "is_bot": true,
			"is_enterprise_install": false,
		}},
	}
}

func event(h Happening) object {
	m := message(h)
	switch h.Type {
	case "app_mention":
		m["type"] = "app_mention"
		m["channel"], m["event_ts"] = h.Channel, h.TS
		if h.EditedTS != "" {
			m["edited"] = object{"user": h.User, "ts": h.EditedTS}
		}
		return m
	case "message_changed":
		previous := message(h)
		previous["text"] = h.PreviousText
		delete(previous, "blocks")
		m["edited"] = object{"user": h.User, "ts": h.EditedTS}
		return object{
			"type": "message", "subtype": "message_changed", "hidden": true, "channel": h.Channel,
			"channel_type": "channel", "ts": h.EditedTS, "event_ts": h.EditedTS,
			"message": m, "previous_message": previous,
		}
	default:
		m["channel"], m["event_ts"] = h.Channel, h.TS
		m["channel_type"] = map[bool]string{true: "im", false: "channel"}[h.Type == "im"]
		return m
	}
}

func message(h Happening) object {
	m := object{"type": "message", "ts": h.TS, "text": h.Text, "team": h.TeamID}
	if h.User != "" {
		m["user"] = h.User
	}
	if h.ThreadTS != "" {
		m["thread_ts"] = h.ThreadTS
	}
	if h.FromBot != "" {
		m["bot_id"] = h.FromBot
	}
	if h.FromApp != "" {
		m["app_id"] = h.FromApp
	}
	if len(h.Metadata) > 0 {
		m["metadata"] = h.Metadata
	}
	if len(h.Blocks) > 0 {
		m["blocks"] = h.Blocks
	}
	return m
}
