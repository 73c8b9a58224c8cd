package tracker_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/bus/embedded"
	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/pgtest"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker"
)

// patient is for what is awaited on a busy machine.
const patient = time.Minute

// node is one process of the tracker.
type node struct {
	trackerv1connect.TrackerServiceClient
	service *tracker.Service
	stop    func()
}

// join starts a process of the tracker on a database, with its index in dir.
func join(t *testing.T, pool *pgxpool.Pool, dir string) node {
	t.Helper()
	broker, err := embedded.Start(t.Context(), embedded.Options{})
	require.NoError(t, err)
	b, err := bus.Open(bus.Config{Brokers: broker.Brokers(), ClientID: "test"})
	require.NoError(t, err)
	require.NoError(t, b.EnsureTopics(t.Context(), tracker.Module.Topics...))
	service, err := tracker.New(t.Context(), tracker.Deps{
		Config: tracker.Config{SearchDir: dir}, Pool: pool, Bus: b, Company: roster{}, Log: slog.New(slog.DiscardHandler),
		Metrics: prometheus.NewRegistry(), Now: time.Now, Node: uuid.NewString(),
	})
	require.NoError(t, err)
	keys, err := rpc.NewKeys(config.Secret(strings.Repeat("k", rpc.MinKeyBytes)))
	require.NoError(t, err)
	server := rpc.NewServer(rpc.ServerOptions{Service: "tracker", Log: slog.New(slog.DiscardHandler), Keys: keys})
	service.Register(server)
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	ended := make(chan error, 1)
	go func() { ended <- service.Run(ctx) }()
	n := node{service: service}
	stopped := false
	n.stop = func() {
		if !stopped {
			stopped = true
			cancel()
			require.NoError(t, <-ended)
			require.NoError(t, b.Close())
			require.NoError(t, broker.Close())
		}
	}
	t.Cleanup(n.stop)
	require.Eventually(t, func() bool { return service.Ready(t.Context())[0].OK }, patient, 5*time.Millisecond)
	n.TrackerServiceClient = trackerv1connect.NewTrackerServiceClient(rpc.NewClient(rpc.InProcess(server), rpc.ClientOptions{Service: "toolregistry", Keys: keys, Timeout: patience}))
	return n
}

// indexed waits until a process has read every item.
func (n node) indexed(t *testing.T) node {
	t.Helper()
	require.Eventually(t, func() bool { return n.service.Ready(t.Context())[1].OK }, patient, 5*time.Millisecond)
	return n
}

func (n node) file(t *testing.T, title, body string) *trackerv1.CreateWorkItemResponse {
	t.Helper()
	res, err := n.CreateWorkItem(seat(t.Context(), "ops-lead"), &trackerv1.CreateWorkItemRequest{Title: title, Body: body})
	require.NoError(t, err)
	return res
}

func (n node) search(t *testing.T, req *trackerv1.SearchWorkItemsRequest) *trackerv1.SearchWorkItemsResponse {
	t.Helper()
	res, err := n.SearchWorkItems(seat(t.Context(), "ops-lead"), req)
	require.NoError(t, err)
	return res
}

// titles answers what a text finds, best first. The answer must be complete.
func (n node) titles(t *testing.T, text string) []string {
	t.Helper()
	res := n.search(t, &trackerv1.SearchWorkItemsRequest{Text: text, Limit: 50})
	require.True(t, res.GetComplete(), res.GetIncomplete())
	require.Len(t, res.GetMatches(), int(res.GetCount()))
	require.LessOrEqual(t, res.GetCount(), res.GetTotal())
	titles := []string{}
	for _, m := range res.GetMatches() {
		titles = append(titles, m.GetTitle())
	}
	return titles
}

func searchWorld(t *testing.T) node {
	t.Helper()
	return join(t, pgtest.Pool(t, "tracker", tracker.Module.Migrations), "").indexed(t)
}

func TestASearchAnswersTheBestMatchFirst(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	n.file(t, "Order new chairs", "The certificate of the old ones is in the drawer, together with many other papers that nobody has read for years.")
	n.file(t, "Renew the certificate", "It runs out in May.")
	n.file(t, "Certificate", "")
	n.file(t, "Clean the kitchen", "")
	n.file(t, "Renew the lease", "The landlord wants to know by May.")
	require.Equal(t, []string{"Certificate", "Renew the certificate", "Order new chairs"}, n.titles(t, "certificate"), "the title counts more, and more in few words")
	require.Equal(t, "Renew the certificate", n.titles(t, "renew certificate")[0], "both words are worth more than one")
	require.Equal(t, []string{"Renew the lease", "Renew the certificate"}, n.titles(t, "landlord MAY"), "the rare word is worth more")
	require.Empty(t, n.titles(t, "submarine"))
	res := n.search(t, &trackerv1.SearchWorkItemsRequest{Text: "drawer papers"})
	require.EqualValues(t, 1, res.GetTotal())
	match := res.GetMatches()[0]
	require.Equal(t, "body", match.GetFoundIn())
	require.Contains(t, match.GetSnippet(), "in the drawer")
	require.LessOrEqual(t, len(match.GetSnippet()), 200)
	require.Positive(t, match.GetScore())
}

func TestWordsMayBeMisspeltOrUnfinished(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	n.file(t, "Authentication fails on login", "")
	n.file(t, "Receive the parcels", "")
	n.file(t, "Café menu", "")
	for _, text := range []string{"authent", "log", "authentiction", "authentcation", "logni", "AUTHENTICATOIN", "uthentication", "authemticatiom"} {
		require.Equal(t, []string{"Authentication fails on login"}, n.titles(t, text), text)
	}
	require.Equal(t, []string{"Receive the parcels"}, n.titles(t, "receiev"))
	require.Equal(t, []string{"Café menu"}, n.titles(t, "cafe"))
	require.Empty(t, n.titles(t, "lo9ni"), "two slips in a short word are another word")
}

func TestTextsInChineseJapaneseAndKoreanAreFoundByAnyPart(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	for _, title := range []string{"修复登录页面的错误", "更新安全证书", "ログイン画面の不具合を直す", "証明書を更新する", "로그인 오류 수정", "인증서 갱신하기"} {
		n.file(t, title, "")
	}
	for text, want := range map[string]string{
		"登录": "修复登录页面的错误", "登录页面": "修复登录页面的错误", "安全证书": "更新安全证书",
		"ログイン": "ログイン画面の不具合を直す", "ﾛｸﾞｲﾝ": "ログイン画面の不具合を直す", "証明書": "証明書を更新する",
		"로그인": "로그인 오류 수정", "인증서": "인증서 갱신하기", "오류": "로그인 오류 수정",
	} {
		require.Equal(t, want, n.titles(t, text)[0], text)
	}
}

func TestKeysAreUnderstood(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	for i := range 12 {
		n.file(t, fmt.Sprint("Item ", i+1), "")
	}
	n.file(t, "After OPS-3", "")
	res := n.search(t, &trackerv1.SearchWorkItemsRequest{Text: "ops-1", Limit: 50})
	keys := []string{}
	for _, m := range res.GetMatches() {
		if m.GetFoundIn() == "key" {
			keys = append(keys, m.GetKey())
		}
	}
	require.Equal(t, []string{"OPS-1", "OPS-10", "OPS-11", "OPS-12", "OPS-13"}, keys)
	require.Equal(t, "OPS-1", res.GetMatches()[0].GetKey())
	require.Equal(t, []string{"Item 3", "After OPS-3"}, n.titles(t, " OPS-3 ")[:2])
	require.Empty(t, n.search(t, &trackerv1.SearchWorkItemsRequest{Text: "ops-1", Project: "SHOP"}).GetMatches())
}

func TestASearchShowsWhatWasJustWritten(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	ctx := seat(t.Context(), "ops-lead")
	res := n.file(t, "Paint the door", "")
	for round := range 20 {
		word := fmt.Sprintf("colour%dx", round)
		_, err := n.CommentOnWorkItem(ctx, &trackerv1.CommentOnWorkItemRequest{Item: res.GetKey(), Body: "How about " + word + "?"})
		require.NoError(t, err)
		found := n.search(t, &trackerv1.SearchWorkItemsRequest{Text: word})
		require.Equal(t, res.GetKey(), found.GetMatches()[0].GetKey())
		require.Equal(t, "comment", found.GetMatches()[0].GetFoundIn())
	}
	_, err := n.UpdateWorkItem(ctx, &trackerv1.UpdateWorkItemRequest{Item: res.GetKey(), Title: proto.String("Paint the fence"), Status: proto.String("done")})
	require.NoError(t, err)
	require.Empty(t, n.titles(t, "door"))
	require.Equal(t, []string{"Paint the fence"}, n.titles(t, "fence"))
	require.Empty(t, n.search(t, &trackerv1.SearchWorkItemsRequest{Text: "fence", OpenOnly: true}).GetMatches(), "what is finished is not open")
}

func TestWhatIsSearchedWronglyIsRefused(t *testing.T) {
	t.Parallel()
	n := searchWorld(t)
	for field, req := range map[string]*trackerv1.SearchWorkItemsRequest{
		"text":         {},
		"limit":        {Text: "x", Limit: 51},
		"project":      {Text: "x", Project: "NOPE"},
		"min_position": {Text: "x", MinPosition: "knowledge@1:1"},
	} {
		_, err := n.SearchWorkItems(seat(t.Context(), "ops-lead"), req)
		refusal(t, err, fault.Invalid, field)
	}
	_, err := n.SearchWorkItems(seat(t.Context(), "ops-lead"), &trackerv1.SearchWorkItemsRequest{Text: strings.Repeat("x", 401)})
	refusal(t, err, fault.Invalid, "text")
	_, err = n.SearchWorkItems(seat(t.Context(), "ops-lead"), &trackerv1.SearchWorkItemsRequest{Text: "x", MinPosition: "tracker@1:99999"})
	require.Equal(t, "BEHIND", refusal(t, err, fault.Unavailable, "min_position").Reason)
	for _, text := range []string{"🙂", "' or 1=1 --", "%_\\", "\u202eabc", strings.Repeat("字", 133), "-1", "OPS-", "OPS-99999999999999999999", "* AND (NOT", "a-2147483647"} {
		n.titles(t, text)
	}
}

func TestASearchIsRefusedWhileTheIndexIsBuilt(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", tracker.Module.Migrations)
	first := join(t, pool, "").indexed(t)
	first.file(t, "There from the start", "")
	first.stop()
	held, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = held.Exec(t.Context(), "lock table items in access exclusive mode")
	require.NoError(t, err)
	second := join(t, pool, "")
	_, err = second.SearchWorkItems(seat(t.Context(), "ops-lead"), &trackerv1.SearchWorkItemsRequest{Text: "start"})
	f := refusal(t, err, fault.Unavailable, "")
	require.Equal(t, "INDEX_BUILDING", f.Reason)
	require.Contains(t, f.Message, "do not conclude that there is nothing")
	condition := second.service.Ready(t.Context())[1]
	require.False(t, condition.OK || condition.Blocking)
	require.NoError(t, held.Rollback(t.Context()))
	require.Equal(t, []string{"There from the start"}, second.indexed(t).titles(t, "start"))
}

func TestASearchThatIsBehindSaysSo(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", tracker.Module.Migrations)
	n := join(t, pool, "").indexed(t)
	at := n.file(t, "Seen before", "")
	n.titles(t, "seen")
	held, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = held.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = held.Exec(t.Context(), "lock table history in access exclusive mode")
	require.NoError(t, err)
	res := n.search(t, &trackerv1.SearchWorkItemsRequest{Text: "seen"})
	require.False(t, res.GetComplete())
	require.Contains(t, res.GetIncomplete(), "behind the writes")
	require.Len(t, res.GetMatches(), 1)
	require.NoError(t, held.Rollback(t.Context()))
	res = n.search(t, &trackerv1.SearchWorkItemsRequest{Text: "seen", MinPosition: at.GetPosition()})
	require.True(t, res.GetComplete())
}

func TestTheIndexFollowsWhatOtherProcessesWrite(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", tracker.Module.Migrations)
	one, other := join(t, pool, "").indexed(t), join(t, pool, "").indexed(t)
	for round := range 20 {
		title := fmt.Sprintf("Round number%d", round)
		one.file(t, title, "")
		require.Equal(t, []string{title}, other.titles(t, fmt.Sprintf("number%d ", round))[:1])
	}
}

func TestAWriteThatCommitsLateIsFound(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", tracker.Module.Migrations)
	n := join(t, pool, "").indexed(t)
	n.file(t, "Template", "")
	late, err := pool.Begin(t.Context())
	require.NoError(t, err)
	id := uuid.New()
	_, err = late.Exec(t.Context(), `insert into items select (jsonb_populate_record(i, jsonb_build_object('id', $1::text, 'number', 1000, 'title', 'Straggler'))).* from items i`, id)
	require.NoError(t, err)
	_, err = late.Exec(t.Context(), `insert into history select (jsonb_populate_record(h, jsonb_build_object('position', nextval('positions'), 'item_id', $1::text, 'txid', pg_current_xact_id()::text))).* from history h limit 1`, id)
	require.NoError(t, err)
	for round := range 5 {
		n.file(t, fmt.Sprintf("Overtakes%d", round), "")
		require.Len(t, n.titles(t, fmt.Sprintf("Overtakes%d", round))[:1], 1)
	}
	require.Empty(t, n.titles(t, "straggler"))
	require.NoError(t, late.Commit(t.Context()))
	require.Equal(t, []string{"Straggler"}, n.titles(t, "straggler"))
}

func TestAnIndexGoesOnFromItsFolderAndIsBuiltAnewWhenThatIsNoUse(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", tracker.Module.Migrations)
	dir := filepath.Join(t.TempDir(), "search")
	first := join(t, pool, dir).indexed(t)
	first.file(t, "Kept", "")
	require.Equal(t, []string{"Kept"}, first.titles(t, "kept"))
	first.stop()
	segments := func() []string {
		names, err := filepath.Glob(filepath.Join(dir, "*.segment"))
		require.NoError(t, err)
		return names
	}
	require.NotEmpty(t, segments())
	away := join(t, pool, "").indexed(t)
	away.file(t, "Written while it was down", "")
	away.stop()
	for name, harm := range map[string]func(){
		"not at all":             func() {},
		"a segment is damaged":   func() { damage(t, segments()[0]) },
		"a segment is gone":      func() { require.NoError(t, os.Remove(segments()[0])) },
		"a segment is empty":     func() { require.NoError(t, os.Truncate(segments()[0], 0)) },
		"the manifest is gone":   func() { require.NoError(t, os.Remove(filepath.Join(dir, "manifest"))) },
		"the manifest is broken": func() { damage(t, filepath.Join(dir, "manifest")) },
		"the folder is gone":     func() { require.NoError(t, os.RemoveAll(dir)) },
		"something was left over": func() {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "00000099.segment"), []byte("half"), 0o600))
			require.NoError(t, os.WriteFile(filepath.Join(dir, "manifest.new"), []byte("half"), 0o600))
		},
	} {
		harm()
		n := join(t, pool, dir).indexed(t)
		require.Equal(t, []string{"Kept"}, n.titles(t, "kept"), name)
		require.Equal(t, []string{"Written while it was down"}, n.titles(t, "written"), name)
		n.stop()
	}
}

func damage(t *testing.T, path string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	raw[len(raw)/2] ^= 0x20
	require.NoError(t, os.WriteFile(path, raw, 0o600))
}

func TestAFolderOfAnotherDatabaseIsNotUsed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	one := join(t, pgtest.Pool(t, "tracker", tracker.Module.Migrations), dir).indexed(t)
	one.file(t, "Of the first database", "")
	require.Len(t, one.titles(t, "database"), 1)
	one.stop()
	other := join(t, pgtest.Pool(t, "tracker", tracker.Module.Migrations), dir).indexed(t)
	require.Empty(t, other.titles(t, "database"))
}

func TestTwoProcessesWithOneFolderBothFindEverything(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t, "tracker", tracker.Module.Migrations)
	dir := t.TempDir()
	one, other := join(t, pool, dir).indexed(t), join(t, pool, dir).indexed(t)
	one.file(t, "Shared", "")
	require.Equal(t, []string{"Shared"}, one.titles(t, "shared"))
	require.Equal(t, []string{"Shared"}, other.titles(t, "shared"))
}
