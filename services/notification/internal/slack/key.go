package slack

import (
	"regexp"
)

// Target is a thread as the API knows it.
type Target struct {
	Team    string
	Channel string
	// Thread is the ts of the thread's first message, whether or not it has
	// replies yet.
	Thread string
}

// Key is the target's conversation key, slack:<team>/<channel>/<thread>.
func (t Target) Key() string { return Source + ":" + t.Team + "/" + t.Channel + "/" + t.Thread }

// ParseKey is the inverse of [Target.Key]; false when key is none of ours.
func ParseKey(key string) (Target, bool) {
	parts := regexp.MustCompile(`^slack:([A-Z0-9]{1,32})/([A-Z0-9]{1,32})/([0-9]{1,12}\.[0-9]{1,9})$`).FindStringSubmatch(key)
	if parts == nil {
		return Target{}, false
	}
	return Target{Team: parts[1], Channel: parts[2], Thread: parts[3]}, true
}

const (
	// MarkerType is the event_type of the metadata that our messages carry.
	MarkerType = "bullpen_message"
	// MarkerField of its payload is the message's id.
	MarkerField = "message_id"
)

// OutboundID is what Slack calls a message, channel and ts.
func OutboundID(channel, ts string) string { return channel + "/" + ts }
