package session

import (
	"bytes"
	"strconv"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/wire"
)

// The words of the protocol.
const (
	modern, legacy = "2026-07-28", "2025-11-25"

	methodDiscover    = "server/discover"
	methodInitialize  = "initialize"
	methodPing        = "ping"
	methodTools       = "tools/list"
	methodCall        = "tools/call"
	methodPrompt      = "prompts/get"
	methodRead        = "resources/read"
	methodSubscribe   = "resources/subscribe"
	methodUnsubscribe = "resources/unsubscribe"
	methodSetLevel    = "logging/setLevel"
	methodListen      = "subscriptions/listen"
	methodSample      = "sampling/createMessage"
	methodElicit      = "elicitation/create"
	methodRoots       = "roots/list"

	notificationInitialized  = "notifications/initialized"
	notificationCancelled    = "notifications/cancelled"
	notificationProgress     = "notifications/progress"
	notificationMessage      = "notifications/message"
	notificationTools        = "notifications/tools/list_changed"
	notificationPrompts      = "notifications/prompts/list_changed"
	notificationResources    = "notifications/resources/list_changed"
	notificationResource     = "notifications/resources/updated"
	notificationAcknowledged = "notifications/subscriptions/acknowledged"
	notificationElicited     = "notifications/elicitation/complete"

	metaVersion      = "io.modelcontextprotocol/protocolVersion"
	metaClient       = "io.modelcontextprotocol/clientInfo"
	metaCapabilities = "io.modelcontextprotocol/clientCapabilities"
	metaLogLevel     = "io.modelcontextprotocol/logLevel"
	metaSubscription = "io.modelcontextprotocol/subscriptionId"

	codeNoMethod       = -32601
	codeInvalidParams  = -32602
	codeInternal       = -32603
	codeHeaderMismatch = -32020
	codeNoCapability   = -32021
	codeNoVersion      = -32022
)

// number reads an id or a token of ours.
func number(raw []byte) (int64, bool) {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	return n, err == nil
}

// asked takes a request of the server.
func (s *Session) asked(m wire.Message, via *call) {
	c := via
	if c == nil {
		c = s.only()
	}
	switch m.Method {
	case methodPing:
		s.link.post(wire.Result(m.ID, []byte("{}")))
		return
	case methodSample, methodElicit, methodRoots:
		if !s.modern && c != nil && c.heed != nil && c.accepts(m.Method, m.Params) {
			c.heed(m)
			return
		}
		if m.Method == methodRoots && !s.modern {
			s.link.post(wire.Result(m.ID, []byte(`{"roots":[]}`))) // it is true: whoever calls has none
			return
		}
		s.refuse(m.ID, codeNoMethod, "Nobody can be asked in this call.")
		return
	default:
		s.refuse(m.ID, codeNoMethod, "This client knows no such method.")
	}
}

func (s *Session) refuse(id []byte, code int, message string) {
	s.link.post(wire.Failure(id, wire.Refusal(code, message)))
}

// notified takes a notification of the server.
func (s *Session) notified(m wire.Message, via *call) {
	switch m.Method {
	case notificationProgress:
		s.progressed(m)
	case notificationTools:
		s.listsChanged(Changes{Tools: true})
	case notificationPrompts:
		s.listsChanged(Changes{Prompts: true})
	case notificationResources:
		s.listsChanged(Changes{Resources: true})
	case notificationResource:
		if params, err := wire.Object(m.Params); err == nil {
			if uri, ok := wire.Text(wire.Get(params, "uri")); ok && s.options.ResourceUpdated != nil && s.following() {
				s.options.ResourceUpdated(uri)
			}
		}
	case notificationAcknowledged:
		s.listener.acknowledged(m.Params, via)
	case notificationCancelled:
		s.withdrawn(m.Params)
	case notificationMessage, notificationElicited:
		c := via
		if c == nil {
			c = s.only()
		}
		if c != nil && c.heed != nil {
			c.heed(m)
		}
	}
}

// progressed finds the call by its token, which is its id.
func (s *Session) progressed(m wire.Message) {
	params, err := wire.Object(m.Params)
	if err != nil {
		return
	}
	id, ok := number(bytes.Trim(wire.Get(params, "progressToken"), `"`)) // some servers make a text of it
	if !ok {
		return
	}
	c := s.open(id)
	if c == nil {
		return
	}
	if c.touch != nil {
		c.touch()
	}
	if c.heed != nil {
		c.heed(m)
	}
}
