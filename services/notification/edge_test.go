package notification_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/doubles/githubdouble"
	"github.com/bullpenhq/bullpen/doubles/signed"
	"github.com/bullpenhq/bullpen/doubles/slackdouble"
	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

const (
	githubPath = "/webhooks/github"
	quillPath  = "/webhooks/slack/quill"
)

// payload is an issue comment with room for anything in its body.
func payload(body string) []byte {
	return []byte(`{"action":"created","issue":{"id":1,"number":1,"title":"t"},"comment":{"id":1,"body":"` + body +
		`"},"sender":{"login":"ines-h","id":1},"repository":{"full_name":"acme/shop"}}`)
}

func comment(id string, body []byte) signed.Webhook {
	return githubdouble.Sign(githubdouble.Envelope{Secret: githubSecret, Event: "issue_comment", DeliveryID: id}, body)
}

// filler is a payload of exactly n bytes whose bulk is read by nobody.
func filler(n int) []byte {
	const head, tail = `{"zen":"`, `"}`
	return []byte(head + strings.Repeat("x", n-len(head)-len(tail)) + tail)
}

func TestHostileRequestsGetTheirRightAnswer(t *testing.T) {
	t.Parallel()
	w := setup(t)
	slackEvent := func(at time.Time) signed.Webhook {
		return slackdouble.Event(slackSecret, at, slackdouble.Happening{Text: "<@U0QUILL> hi", TS: slackdouble.TS(at), BotUserID: "U0QUILL"})
	}
	good := comment("good", payload("@quill hi"))
	twice := func(hook signed.Webhook, name string) signed.Webhook {
		again := signed.Webhook{Header: hook.Header.Clone(), Body: hook.Body}
		again.Header.Add(name, "another")
		return again
	}
	compressed := func() signed.Webhook {
		var packed bytes.Buffer
		zip := gzip.NewWriter(&packed)
		_, err := zip.Write(good.Body)
		require.NoError(t, err)
		require.NoError(t, zip.Close())
		return comment("gzip", packed.Bytes()).With("Content-Encoding", "gzip")
	}
	for name, c := range map[string]struct {
		path string
		hook signed.Webhook
		want int
		word string
	}{
		"compressed":                      {githubPath, compressed(), 415, "Content-Encoding"},
		"identity is no compression":      {githubPath, comment("identity", payload("@quill")).With("Content-Encoding", "identity"), 200, "accepted"},
		"a form":                          {githubPath, githubdouble.Sign(githubdouble.Envelope{Secret: githubSecret, Event: "issue_comment", DeliveryID: "form", Form: true}, payload("@quill form")), 200, "accepted"},
		"broken JSON":                     {githubPath, comment("broken", []byte(`{"action":`)), 200, "accepted"},
		"deep JSON":                       {githubPath, comment("deep", []byte(strings.Repeat("[", 100_000))), 200, "accepted"},
		"a number where an object is":     {githubPath, comment("shape", []byte(`{"issue":7,"repository":{"full_name":"a/b"}}`)), 200, "accepted"},
		"no body":                         {githubPath, comment("empty", nil), 200, "accepted"},
		"a form without payload":          {githubPath, comment("formless", []byte("a=b")).With("Content-Type", "application/x-www-form-urlencoded"), 200, "accepted"},
		"unicode, NUL and lone halves":    {githubPath, comment("unicode", payload(`@quill \u0000 \ud800 \u2028 𝔘ñï`)), 200, "accepted"},
		"bytes that are no UTF-8":         {githubPath, comment("latin", payload("@quill \xe9\xff")), 200, "accepted"},
		"an event nobody knows":           {githubPath, githubdouble.Sign(githubdouble.Envelope{Secret: githubSecret, Event: "moon_phase", DeliveryID: "moon"}, payload("@quill")), 200, "accepted"},
		"a delivery id that is a program": {githubPath, comment("'; drop table webhooks; --", payload("@quill x")), 200, "accepted"},
		"two delivery ids":                {githubPath, twice(comment("two", payload("@quill two")), "X-GitHub-Delivery"), 200, "accepted"},
		"two signatures":                  {githubPath, twice(good, "X-Hub-Signature-256"), 401, "signature"},
		"another secret":                  {githubPath, githubdouble.Sign(githubdouble.Envelope{Secret: "x", Event: "issue_comment"}, good.Body), 401, "signature"},
		"another body":                    {githubPath, signed.Webhook{Header: good.Header, Body: append([]byte(" "), good.Body...)}, 401, "signature"},
		"only the legacy signature":       {githubPath, legacy(good), 401, "signature"},
		"Slack, five minutes slow":        {quillPath, slackEvent(time.Now().Add(-5*time.Minute + 5*time.Second)), 200, "accepted"},
		"Slack, five minutes fast":        {quillPath, slackEvent(time.Now().Add(5*time.Minute - 5*time.Second)), 200, "accepted"},
		"Slack, too old":                  {quillPath, slackEvent(time.Now().Add(-6 * time.Minute)), 401, "signature"},
		"Slack, from the future":          {quillPath, slackEvent(time.Now().Add(6 * time.Minute)), 401, "signature"},
		"Slack, another secret":           {quillPath, slackdouble.Event("x", time.Now(), slackdouble.Happening{}), 401, "signature"},
		"Slack, an app nobody has":        {"/webhooks/slack/nobody", slackEvent(time.Now()), 404, "No seat"},
		"Slack, broken JSON":              {quillPath, slackdouble.Sign(slackSecret, time.Now(), []byte(`{"type":`)), 200, "accepted"},
		"Slack, deep JSON":                {quillPath, slackdouble.Sign(slackSecret, time.Now(), []byte(strings.Repeat(`{"a":`, 50_000))), 200, "accepted"},
		"Slack, two stamps":               {quillPath, twice(slackEvent(time.Now()), "X-Slack-Request-Timestamp"), 401, "signature"},
		"Slack, a handshake":              {"/webhooks/slack/not-yet", slackdouble.Event("unknown yet", time.Now(), slackdouble.Happening{Type: "url_verification", Challenge: "3eZbrw1a"}), 200, "3eZbrw1a"},
		"Slack, over its limit":           {quillPath, slackdouble.Sign(slackSecret, time.Now(), []byte(`{"type":"app_rate_limited","minute_rate_limited":1}`)), 200, "accepted"},
	} {
		t.Run(name, func(t *testing.T) {
			status, body := w.send(t, c.path, c.hook)
			require.Equal(t, c.want, status, body)
			require.Contains(t, body, c.word)
		})
	}
	for _, s := range w.states(t) {
		require.NotContains(t, s, "received")
	}
	var dead int
	require.NoError(t, w.pool.QueryRow(t.Context(), `select count(*) from webhooks where state = 'dead' and reason <> ''`).Scan(&dead))
	require.Equal(t, 8, dead, "broken, deep, shape, empty, formless, two ids, and Slack's broken and deep")
	for _, d := range w.deliveries(t) {
		require.NotContains(t, d.GetBody(), "\x00")
	}
}

func legacy(hook signed.Webhook) signed.Webhook {
	old := hook.With("X-Hub-Signature", "sha1=0000000000000000000000000000000000000000")
	old.Header.Del("X-Hub-Signature-256")
	return old
}

// chunked hides how long a body is.
type chunked struct{ io.Reader }

func TestTheCapIsExactWhetherAnnouncedOrNot(t *testing.T) {
	t.Parallel()
	w := setup(t)
	const largest = 25 << 20
	send := func(size int, announced bool) int {
		hook := comment(fmt.Sprintf("%d-%t", size, announced), filler(size))
		var body io.Reader = bytes.NewReader(hook.Body)
		if !announced {
			body = chunked{body}
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, w.url+githubPath, body)
		require.NoError(t, err)
		req.Header = hook.Header
		res, err := http.DefaultClient.Do(req)
		require.NoError(t, err)
		require.NoError(t, res.Body.Close())
		return res.StatusCode
	}
	for _, announced := range []bool{true, false} {
		require.Equal(t, http.StatusRequestEntityTooLarge, send(largest+1, announced))
		status := send(largest, announced)
		for status == http.StatusServiceUnavailable { // a slow machine; a vendor would send it again too
			status = send(largest, announced)
		}
		require.Equal(t, http.StatusOK, status)
	}
	var lengths []int
	require.NoError(t, w.pool.QueryRow(t.Context(), `select array_agg(length(body)) from webhooks`).Scan(&lengths))
	require.Equal(t, []int{largest, largest}, lengths)
}

func TestLargeBodiesThatAreOnlyAnnouncedKeepNobodyOut(t *testing.T) {
	t.Parallel()
	w := setup(t)
	address := strings.TrimPrefix(w.url, "http://")
	for _, length := range []string{"Content-Length: 26214400\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n"} {
		for range 13 { // more than fit into the bytes that may be in flight
			c, err := net.Dial("tcp", address)
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, c.Close()) })
			_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\n%s", githubPath, length)
			require.NoError(t, err)
			// The server asks for the body once a handler reads it: from then on the request counts.
			asked := make([]byte, len("HTTP/1.1 100"))
			_, err = io.ReadFull(c, asked)
			require.NoError(t, err)
			require.Equal(t, "HTTP/1.1 100", string(asked))
		}
	}
	status, body := w.send(t, githubPath, comment("small", payload("@quill hi")))
	require.Equal(t, http.StatusOK, status, body)
}

func TestOnlyPostIsAWebhook(t *testing.T) {
	t.Parallel()
	w := setup(t)
	for _, path := range []string{githubPath, quillPath} {
		for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodDelete, http.MethodOptions} {
			req, err := http.NewRequestWithContext(t.Context(), method, w.url+path, nil)
			require.NoError(t, err)
			res, err := http.DefaultClient.Do(req)
			require.NoError(t, err)
			require.NoError(t, res.Body.Close())
			require.Equal(t, http.StatusMethodNotAllowed, res.StatusCode)
			require.Equal(t, "POST", res.Header.Get("Allow"))
		}
	}
}

func TestWhatIsNotSetUpAsksTheVendorToComeBack(t *testing.T) {
	t.Parallel()
	hook := comment("d", payload("@quill hi"))
	event := slackdouble.Event(slackSecret, time.Now(), slackdouble.Happening{BotUserID: "U0QUILL"})
	unset := officeOf()
	unset.Integrations = &companyv1.Integrations{}
	for name, options := range map[string][]option{
		"no company is active": {func(w *world) { w.office.company = nil }},
		"no secret is sealed":  {func(w *world) { w.office.values = nil }},
		"no secret is named":   {withCompany(unset), func(w *world) { delete(w.office.values, "${SIGN_quill}") }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := setup(t, options...)
			for path, hook := range map[string]signed.Webhook{githubPath: hook, quillPath: event} {
				req, err := hook.Request(t.Context(), w.url+path)
				require.NoError(t, err)
				res, err := http.DefaultClient.Do(req)
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
				require.Equal(t, http.StatusServiceUnavailable, res.StatusCode)
				require.NotEmpty(t, res.Header.Get("Retry-After"))
			}
		})
	}
}

func TestOneWebhookSentManyTimesAtOnceIsOneDelivery(t *testing.T) {
	t.Parallel()
	w := setup(t)
	hook := comment("same", payload("@quill hi"))
	const twins = 64
	answers := make(chan string, twins)
	var sending sync.WaitGroup
	for range twins {
		sending.Go(func() {
			status, body := w.send(t, githubPath, hook)
			answers <- strconv.Itoa(status) + body
		})
	}
	sending.Wait()
	close(answers)
	fresh := 0
	for answer := range answers {
		require.True(t, strings.HasPrefix(answer, "200"), answer)
		if strings.Contains(answer, "accepted") {
			fresh++
		}
	}
	require.Equal(t, 1, fresh)
	require.Len(t, w.deliveries(t), 1)
}

func TestADatabaseThatIsCutLosesAndDoublesNothing(t *testing.T) {
	t.Parallel()
	w := setup(t)
	ctx, cancel := context.WithCancel(t.Context())
	var cutting sync.WaitGroup
	cutting.Go(func() {
		ticker := time.NewTicker(15 * time.Millisecond)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// Every other connection to this database, whatever it is doing.
			_, _ = w.pool.Exec(ctx, `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
		}
	})
	const n = 60
	var again int
	for i := range n {
		hook := comment(fmt.Sprint("d", i), []byte(strings.Replace(string(payload("@quill hi")), `"comment":{"id":1`, fmt.Sprintf(`"comment":{"id":%d`, i+1), 1)))
		for {
			status, body := w.send(t, githubPath, hook)
			if status == http.StatusOK {
				break
			}
			require.Equal(t, http.StatusServiceUnavailable, status, body)
			again++
		}
	}
	cancel()
	cutting.Wait()
	t.Logf("%d of %d webhooks were answered 503 first", again, n)
	require.Eventually(t, func() bool { return w.pool.Ping(t.Context()) == nil }, 10*time.Second, 10*time.Millisecond)
	require.Len(t, w.deliveries(t), n)
}

func TestAHangingDatabaseIsAnsweredInTime(t *testing.T) {
	t.Parallel()
	w := setup(t)
	tx, err := w.pool.Begin(t.Context())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `lock table webhooks in access exclusive mode`)
	require.NoError(t, err)
	begin := time.Now()
	status, body := w.send(t, quillPath, slackdouble.Event(slackSecret, time.Now(), slackdouble.Happening{BotUserID: "U0QUILL", Text: "<@U0QUILL>"}))
	require.Equal(t, http.StatusServiceUnavailable, status, body)
	require.Less(t, time.Since(begin), 3*time.Second)
	require.NoError(t, tx.Rollback(t.Context()))
}
