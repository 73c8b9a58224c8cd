package slack

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/notification/internal/delivery"
)

const (
	// maxTextBytes is what the longest message that Slack takes can have, with
	// room for blocks beside it.
	maxTextBytes = 1 << 19

	direct = "im"
)

// Identity is what an app is called at the vendor; any part may be unknown.
type Identity struct {
	UserID string
	BotID  string
	AppID  string
}

// heard answers what a request says of the app that it was sent to.
func (c *callback) heard() Identity {
	known := Identity{AppID: c.AppID}
	for _, a := range c.Authorizations {
		if a.IsBot && a.UserID != "" {
			known.UserID = a.UserID
			break
		}
	}
	return known
}

// Parse says what an event means for the seat whose app heard it. What self
// leaves open about that app is taken from the event's envelope. A nil notice means nothing, for the reason that is
// answered beside it. An error, a fault of class invalid, says that the event
// cannot be understood.
func Parse(body []byte, self Identity) (*delivery.Notice, string, error) {
	c, err := decode(body)
	if err != nil {
		return nil, "", err
	}
	if c.Type != "event_callback" {
		return nil, fmt.Sprintf("requests of type %.40q wake nobody", c.Type), nil
	}
	heard := c.heard()
	if self.UserID == "" {
		self.UserID = heard.UserID
	}
	if self.AppID == "" {
		self.AppID = heard.AppID
	}
	e := &c.Event
	switch e.Type {
	case "app_mention", "message":
	default:
		return nil, fmt.Sprintf("events of type %.40q wake nobody", e.Type), nil
	}
	said, reason := e.said()
	if said == nil {
		return nil, reason, nil
	}
	if self.wrote(said) {
		return nil, "it is the seat's own message", nil
	}
	team := c.TeamID
	if team == "" && len(c.Authorizations) > 0 {
		team = c.Authorizations[0].TeamID
	}
	n, err := e.notice(said, team)
	if err != nil {
		return nil, "", err
	}
	n.Claims, reason = e.claims(said, self)
	if len(n.Claims) == 0 {
		return nil, reason, nil
	}
	return n, "", nil
}

func decode(body []byte) (*callback, error) {
	var c callback
	if err := json.Unmarshal(body, &c); err != nil {
		return nil, fault.New(fault.Invalid, "The body is not the JSON that Slack sends.").WithCause(err)
	}
	return &c, nil
}

// said answers the message that the event is about. Joins, topics, deletions
// and the like are no messages, though Slack sends them as such.
func (e *event) said() (*message, string) {
	switch e.Subtype {
	case "", "file_share", "thread_broadcast", "bot_message", "me_message":
		return &e.message, ""
	case "message_changed":
		if e.Message == nil || e.Previous == nil {
			return nil, "the edit does not say what was changed"
		}
		return e.Message, ""
	default:
		return nil, fmt.Sprintf("messages of subtype %.40q wake nobody", e.Subtype)
	}
}

// wrote is the first layer against loops: any of the app's three identities is
// its own.
func (i Identity) wrote(m *message) bool {
	return m.User != "" && m.User == i.UserID ||
		m.BotID != "" && m.BotID == i.BotID ||
		m.app() != "" && m.app() == i.AppID
}

func (e *event) notice(said *message, team string) (*delivery.Notice, error) {
	root := said.ThreadTS
	if root == "" {
		root = said.TS
	}
	target := Target{Team: team, Channel: e.Channel, Thread: root}
	if _, ok := ParseKey(target.Key()); !ok {
		return nil, fault.New(fault.Invalid, "The event does not say in which team, channel and thread it happened.")
	}
	text := said.Text
	for _, f := range said.Files {
		text += fmt.Sprintf("\n[file %s %s]", f.Name, f.URL)
	}
	if len(text) > maxTextBytes {
		return nil, fault.New(fault.Invalid, "The text is %d bytes long; Slack allows 40000 characters.", len(text))
	}
	n := &delivery.Notice{
		Source: Source, ConversationKey: target.Key(), MessageID: said.TS, Body: text,
		Subject: e.Channel, OccurredAt: clock(said.TS), Marker: said.marker(),
		OutboundID: OutboundID(e.Channel, said.TS), Sender: said.sender(),
	}
	if said.Edited != nil {
		n.Revision, n.OccurredAt = said.Edited.TS, clock(said.Edited.TS)
	}
	return n, nil
}

func (m *message) sender() delivery.Sender {
	s := delivery.Sender{VendorID: m.User, Name: m.Username, Bot: m.BotID != "" || m.Subtype == "bot_message"}
	if s.VendorID == "" {
		s.VendorID = m.BotID
	}
	if s.Name == "" && m.BotProfile != nil {
		s.Name = m.BotProfile.Name
	}
	if s.Name == "" {
		s.Name = s.VendorID
	}
	return s
}

// claims says whether the app's seat is meant, and how; the reason is for none.
func (e *event) claims(said *message, self Identity) ([]delivery.Claim, string) {
	meant := func(reason string) []delivery.Claim {
		return []delivery.Claim{{By: delivery.ByApp, Reason: reason, Obligation: delivery.ObligationTool, Addressed: true}}
	}
	called := e.Type == "app_mention" || self.calledIn(said)
	if e.Subtype == "message_changed" {
		switch {
		case e.Previous.Text == said.Text:
			return nil, "the edit left the text as it was"
		case !called || self.calledIn(e.Previous):
			return nil, "the edit calls nobody new"
		case said.Edited == nil:
			return nil, "the text was changed by the vendor, not by its author"
		default:
			return meant(delivery.ReasonMention), ""
		}
	}
	switch {
	case called:
		return meant(delivery.ReasonMention), ""
	case e.ChannelType == direct || strings.HasPrefix(e.Channel, "D"):
		return meant(delivery.ReasonDirectMessage), ""
	case said.ThreadTS != "" && said.ThreadTS != said.TS:
		return []delivery.Claim{{By: delivery.ByFollowing, Reason: delivery.ReasonThread, Obligation: delivery.ObligationNone}}, ""
	default:
		return nil, "it calls nobody"
	}
}

func (i Identity) calledIn(m *message) bool {
	for _, user := range Mentions(m.Text, m.Blocks) {
		if user == i.UserID {
			return true
		}
	}
	return false
}

// clock reads a message's ts; the zero time when it is none.
func clock(ts string) time.Time {
	seconds, fraction, _ := strings.Cut(ts, ".")
	s, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return time.Time{}
	}
	micro, _ := strconv.ParseInt(fraction, 10, 64)
	return time.Unix(s, micro*int64(time.Microsecond)).UTC()
}
