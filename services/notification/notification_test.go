package notification_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
	notificationv1 "github.com/bullpenhq/bullpen/gen/bullpen/notification/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/services/notification"
)

func TestMigrationsGoUpAndDown(t *testing.T) {
	t.Parallel()
	pgtest.UpDownUp(t, notification.Module.Migrations)
}

func TestAMentionBecomesADeliveryEventKeyedBySeat(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.sendGithub(t, githubdouble.Happening{Body: "@Quill can you look?", Number: 7, Repo: "acme/shop", Sender: "Ines-H"})

	mail, err := w.bus.Subscribe("bullpen.notification.delivery.v1", "test")
	require.NoError(t, err)
	defer mail.Close()
	messages, err := mail.Fetch(t.Context(), 10)
	require.NoError(t, err)
	require.Len(t, messages, 1)
	require.Equal(t, "quill", messages[0].Key)
	require.Equal(t, "bullpen.notification.delivery.v1", messages[0].Headers["ce_type"])
	var event notificationv1.DeliveryEvent
	require.NoError(t, proto.Unmarshal(messages[0].Value, &event))
	require.Equal(t, messages[0].Headers["ce_id"], event.GetEventId())
	d := event.GetDeliveryAddressed().GetDelivery()
	require.Equal(t, "github:acme/shop#7", d.GetConversationKey())
	require.Equal(t, "@Quill can you look?", d.GetBody())
	require.Equal(t, "tool", d.GetObligation())
	require.True(t, d.GetAddressed())
	require.Equal(t, "ines", d.GetSender().GetSeat())
	require.Equal(t, "https://github.com/acme/shop/issues/7#issuecomment-1000001", d.GetUrl())
	require.NotZero(t, event.GetSequence())
}

func TestAReplyGoesWhereTheSeatWasAsked(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.sendGithub(t, githubdouble.Happening{Body: "@quill can you look?", Number: 7})
	w.sendSlack(t, "sage", slackdouble.Happening{Text: "<@U0SAGE> hello", TS: "1700000000.000100", Channel: "C1"})
	require.ElementsMatch(t, []string{"quill mention tool", "sage mention tool"}, told(w.deliveries(t)))

	res, err := w.rpc.Reply(seat(t.Context(), "quill", "github:acme/shop#7", "op-1"), &notificationv1.ReplyRequest{Body: "It is **done**."})
	require.NoError(t, err)
	require.Equal(t, "applied", res.GetOutcome())
	require.Equal(t, "github", res.GetSurface())
	require.Contains(t, res.GetUrl(), "https://github.com/acme/shop/issues/7#issuecomment-")
	comments := w.github.Comments()
	require.Len(t, comments, 1)
	require.Equal(t, "quill", comments[0].Login)
	require.Equal(t, "It is **done**.\n\n<!-- bullpen:message:"+res.GetMessageId()+" -->", comments[0].Body)

	res, err = w.rpc.Reply(seat(t.Context(), "sage", "slack:T0ACME/C1/1700000000.000100", "op-2"), &notificationv1.ReplyRequest{Body: "It is **done** <!channel>."})
	require.NoError(t, err)
	require.Equal(t, "applied", res.GetOutcome())
	require.Contains(t, res.GetUrl(), "https://acme.slack.com/archives/C1/p")
	posted := w.slack.Posted()
	require.Len(t, posted, 1)
	require.Equal(t, "It is *done* &lt;!channel&gt;.", posted[0].Text)
	require.Equal(t, "1700000000.000100", posted[0].ThreadTS)
	require.Equal(t, "U0SAGE", posted[0].User)
}

func TestEventsCanBePublishedAgainAfterTheBrokerWasLost(t *testing.T) {
	t.Parallel()
	w := setup(t)
	w.sendGithub(t, githubdouble.Happening{Body: "@quill hi"})
	mail, err := w.bus.Subscribe("bullpen.notification.delivery.v1", "test")
	require.NoError(t, err)
	defer mail.Close()
	first := fetchOne(t, mail)
	require.Eventually(t, func() bool {
		tag, err := w.pool.Exec(t.Context(), `update outbox set sent_at = null where sent_at is not null`)
		return err == nil && tag.RowsAffected() == 1
	}, 10*time.Second, 5*time.Millisecond)
	again := fetchOne(t, mail)
	require.Equal(t, first.Headers["ce_id"], again.Headers["ce_id"])
	require.Equal(t, first.Value, again.Value)
}

func fetchOne(t *testing.T, s bus.Subscription) bus.Message {
	t.Helper()
	messages, err := s.Fetch(t.Context(), 1)
	require.NoError(t, err)
	return messages[0]
}
