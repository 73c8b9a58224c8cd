package slack

import (
	"encoding/json"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Envelope is the part of a request that is known before its event is read.
type Envelope struct {
	// Type is event_callback, url_verification or app_rate_limited.
	Type string `json:"type"`
	// EventID tells events of one app apart.
	EventID   string `json:"event_id"`
	Challenge string `json:"challenge"`
}

// ReadEnvelope reads the envelope only; it is cheap beside reading the event.
func ReadEnvelope(body []byte) (Envelope, error) {
	var e Envelope
	if err := json.Unmarshal(body, &e); err != nil {
		return Envelope{}, fault.New(fault.Invalid, "The body is not the JSON that Slack sends.").WithCause(err)
	}
	return e, nil
}

// callback is an event with its envelope. Everything may be missing.
type callback struct {
	Type           string          `json:"type"`
	TeamID         string          `json:"team_id"`
	AppID          string          `json:"api_app_id"`
	Authorizations []authorization `json:"authorizations"`
	Event          event           `json:"event"`
}

type authorization struct {
	TeamID string `json:"team_id"`
	UserID string `json:"user_id"`
	IsBot  bool   `json:"is_bot"`
}

type event struct {
	message
	Channel     string   `json:"channel"`
	ChannelType string   `json:"channel_type"`
	Message     *message `json:"message"`
	Previous    *message `json:"previous_message"`
}

// message is a message, on its own or inside an edit.
type message struct {
	Type       string          `json:"type"`
	Subtype    string          `json:"subtype"`
	User       string          `json:"user"`
	Username   string          `json:"username"`
	BotID      string          `json:"bot_id"`
	AppID      string          `json:"app_id"`
	BotProfile *botProfile     `json:"bot_profile"`
	Text       string          `json:"text"`
	Blocks     json.RawMessage `json:"blocks"`
	Files      []file          `json:"files"`
	TS         string          `json:"ts"`
	ThreadTS   string          `json:"thread_ts"`
	Edited     *edit           `json:"edited"`
	Metadata   *metadata       `json:"metadata"`
}

type botProfile struct {
	AppID string `json:"app_id"`
	Name  string `json:"name"`
}

type file struct {
	Name  string `json:"name"`
	Title string `json:"title"`
	URL   string `json:"permalink"`
}

type edit struct {
	TS string `json:"ts"`
}

type metadata struct {
	Type    string         `json:"event_type"`
	Payload map[string]any `json:"event_payload"`
}

// app answers the app that posted the message, if one did.
func (m *message) app() string {
	if m.AppID == "" && m.BotProfile != nil {
		return m.BotProfile.AppID
	}
	return m.AppID
}

// marker answers the id of our message that the metadata names.
func (m *message) marker() string {
	if m.Metadata == nil || m.Metadata.Type != MarkerType {
		return ""
	}
	id, _ := m.Metadata.Payload[MarkerField].(string)
	return id
}
