package slackdouble_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/slack-go/slack"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/mishap"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
)

func start(t *testing.T) (*slackdouble.Server, *slack.Client) {
	t.Helper()
	s, err := slackdouble.Start(t.Context(), slackdouble.Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	s.Install(slackdouble.Bot{Token: "xoxb-1", UserID: "U0BOT", BotID: "B0BOT", AppID: "A0BOT", TeamID: "T0ACME"})
	return s, slack.New("xoxb-1", slack.OptionAPIURL(s.URL()))
}

func metadata(id string) slack.SlackMetadata {
	return slack.SlackMetadata{EventType: "answer", EventPayload: map[string]any{"id": id}}
}

func TestAPostStandsInItsThreadWithItsMetadata(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	root := s.Say("C1", "", "U0PERSON", "are you there?")
	s.Say("C1", "", "U0PERSON", "something else")

	_, ts, err := client.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("yes", false),
		slack.MsgOptionTS(root), slack.MsgOptionMetadata(metadata("one")))
	require.NoError(t, err)

	found, more, _, err := client.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{
		ChannelID: "C1", Timestamp: root, IncludeAllMetadata: true,
	})
	require.NoError(t, err)
	require.False(t, more)
	require.Len(t, found, 2)
	require.Equal(t, ts, found[1].Timestamp)
	require.Equal(t, root, found[1].ThreadTimestamp)
	require.Equal(t, "B0BOT", found[1].BotID)
	require.Equal(t, "one", found[1].Metadata.EventPayload["id"])
}

func TestMetadataIsHiddenUnlessAskedFor(t *testing.T) {
	t.Parallel()
	_, client := start(t)
	_, ts, err := client.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("hi", false), slack.MsgOptionMetadata(metadata("one")))
	require.NoError(t, err)
	found, err := client.GetConversationHistoryContext(t.Context(), &slack.GetConversationHistoryParameters{ChannelID: "C1", Latest: ts, Inclusive: true})
	require.NoError(t, err)
	require.Len(t, found.Messages, 1)
	require.Empty(t, found.Messages[0].Metadata.EventPayload)
}

func TestAThreadIsReadPageByPage(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	root := s.Say("C1", "", "U0PERSON", "root")
	for range 6 {
		s.Say("C1", root, "U0PERSON", "reply")
	}
	seen, cursor := 0, ""
	for {
		found, more, next, err := client.GetConversationRepliesContext(t.Context(), &slack.GetConversationRepliesParameters{
			ChannelID: "C1", Timestamp: root, Limit: 3, Cursor: cursor,
		})
		require.NoError(t, err)
		seen += len(found)
		if !more {
			break
		}
		cursor = next
	}
	require.Equal(t, 7, seen)
}

func TestErrorsAreSlacksOwn(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	s.Expel("U0BOT", "C2")
	s.Mishaps.Add("auth.test", slackdouble.RateLimited(3*time.Second), slackdouble.Refused("account_inactive"), mishap.Status(http.StatusBadGateway, false))

	_, _, err := client.PostMessageContext(t.Context(), "C2", slack.MsgOptionText("hi", false))
	require.EqualError(t, err, "not_in_channel")
	_, err = slack.New("xoxb-2", slack.OptionAPIURL(s.URL())).AuthTestContext(t.Context())
	require.EqualError(t, err, "slack rate limit exceeded, retry after 3s", "a mishap comes before the token is looked at")
	_, err = client.AuthTestContext(t.Context())
	require.EqualError(t, err, "account_inactive")
	_, err = client.AuthTestContext(t.Context())
	require.Equal(t, slack.StatusCodeError{Code: 502, Status: "502 Bad Gateway"}, err)
	_, err = slack.New("xoxb-2", slack.OptionAPIURL(s.URL())).AuthTestContext(t.Context())
	require.EqualError(t, err, "invalid_auth")
	who, err := client.AuthTestContext(t.Context())
	require.NoError(t, err)
	require.Equal(t, "U0BOT", who.UserID)
	require.Equal(t, 5, s.Mishaps.Calls("auth.test"))
}

func TestACutPostHasLandedOrNotAsTold(t *testing.T) {
	t.Parallel()
	s, client := start(t)
	s.Mishaps.Add("chat.postMessage", mishap.Cut(true), mishap.Cut(false))
	for range 2 {
		_, _, err := client.PostMessageContext(t.Context(), "C1", slack.MsgOptionText("hi", false))
		require.Error(t, err)
	}
	require.Len(t, s.Posted(), 1)
}

func TestAnEventIsAcceptedByTheVendorsOwnVerifier(t *testing.T) {
	t.Parallel()
	w := slackdouble.Event("secret", time.Now(), slackdouble.Happening{Type: "im", Text: "hello"})
	verifier, err := slack.NewSecretsVerifier(w.Header, "secret")
	require.NoError(t, err)
	_, err = verifier.Write(w.Body)
	require.NoError(t, err)
	require.NoError(t, verifier.Ensure())
}
