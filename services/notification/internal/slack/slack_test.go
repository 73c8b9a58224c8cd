package slack

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestASignatureIsVerifiedWithItsTime(t *testing.T) {
	t.Parallel()
	const (
		secret = "8f742231b10e8888abcd99yyyzzz85a5"
		stamp  = "1531420618"
		body   = "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&" +
			"user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands" +
			"%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c"
		good = "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"
	)
	at := time.Unix(1531420618, 0)
	require.True(t, Verify(secret, good, stamp, []byte(body), at), "the vendor's own example")
	for name, c := range map[string]struct {
		secret, signature, stamp, body string
		now                            time.Time
		want                           bool
	}{
		"a clock that is slow":     {secret, good, stamp, body, at.Add(-5 * time.Minute), true},
		"a clock that is fast":     {secret, good, stamp, body, at.Add(5 * time.Minute), true},
		"too old":                  {secret, good, stamp, body, at.Add(5*time.Minute + time.Second), false},
		"from the future":          {secret, good, stamp, body, at.Add(-5*time.Minute - time.Second), false},
		"another time":             {secret, good, "1531420619", body, at, false},
		"no time":                  {secret, good, "", body, at, false},
		"a time that is no number": {secret, good, "now", body, at, false},
		"another body":             {secret, good, stamp, body + "&", at, false},
		"no secret":                {"", good, stamp, body, at, false},
		"another version":          {secret, "v1" + good[2:], stamp, body, at, false},
		"no signature":             {secret, "", stamp, body, at, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, Verify(c.secret, c.signature, c.stamp, []byte(c.body), c.now))
		})
	}
}

func TestMentionsAreInTextAndBlocks(t *testing.T) {
	t.Parallel()
	blocks := `[{"type":"rich_text","elements":[{"type":"rich_text_section","elements":[
		{"type":"user","user_id":"U0BLOCK"},{"type":"usergroup","usergroup_id":"S1"},{"type":"broadcast","range":"here"},{"type":"text","text":"<@U0TEXT>"}]}]},
		{"type":"section","text":{"type":"mrkdwn","text":"x"},"elements":"odd"}]`
	require.Equal(t, []string{"U0A", "W0B", "U0BLOCK"},
		Mentions("<@U0A> and <@W0B|bob>, <@U0A>, <!subteam^S1>, <!here>, @U0C, <@x>", json.RawMessage(blocks)))
	require.Empty(t, Mentions("", json.RawMessage(`{"not":"a list"}`)))
}

func TestAKeyNamesTheThread(t *testing.T) {
	t.Parallel()
	target := Target{Team: "T0ACME", Channel: "C0GENERAL", Thread: "1700000000.000100"}
	got, ok := ParseKey(target.Key())
	require.True(t, ok)
	require.Equal(t, target, got)
	for _, key := range []string{"", "slack:T0/C0", "slack:T0/C0/", "slack:t0/C0/1.2", "github:a/b#1", "slack:T0/C0/1.2/3"} {
		_, ok := ParseKey(key)
		require.False(t, ok, key)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"type":"event_callback","team_id":"T1","event":{"type":"message","subtype":"message_changed","channel":"C1","message":{"text":"<@U1>","ts":"1.2","edited":{"ts":"1.3"}},"previous_message":{"text":""}},"authorizations":[{"user_id":"U1","is_bot":true}]}`))
	f.Add([]byte(`{"type":"event_callback","event":{"type":"app_mention","text":"\ud800\u0000","ts":"1.2","channel":"C1","blocks":[[]]}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		n, reason, err := Parse(body, Identity{})
		switch {
		case n == nil && err == nil && reason == "":
			t.Fatal("nobody is woken and nothing says why")
		case n != nil && len(n.Claims) == 0:
			t.Fatal("a notice that means nobody")
		}
	})
}

func FuzzMrkdwn(f *testing.F) {
	f.Add("# a\n\n- <@U1> [x](http://y) `z` <!channel>\n\n> q\n\n|a|\n|-|\n|b|")
	f.Fuzz(func(t *testing.T, text string) {
		out := Mrkdwn(text)
		for i := range len(out) - 1 {
			if out[i] == '<' && out[i+1] == '!' {
				t.Fatalf("a command in %q", out)
			}
		}
	})
}
