package main_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	"github.com/bullpenhq/bullpen/doubles/modeldouble"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
)

// verdict holds what there is at the end against what was asked.
type verdict struct {
	questions map[string]question
	journals  []*turnv1.GetTurnResponse
	bills     []modeldouble.Bill
	record    *record
	vendors   *story.Vendors
	database  string
	// lost is how many answers of models may have been lost before they were journaled: one a seat and kill.
	lost int
}

func (v verdict) check(t *testing.T) {
	t.Helper()
	for name, check := range map[string]func(*testing.T){
		"every acknowledged question was worked on in exactly one turn, to its end": v.turns,
		"every turn answered once, where it was asked":                              v.answers,
		"every turn filed one item with one comment, and one page":                  v.filed,
		"an answer that was journaled was never asked for again":                    v.paid,
		"nothing was set aside, and every event left":                               v.settled,
		"every call is in the audit":                                                v.audited,
		"the lead was told once of each item and of each comment":                   v.told,
	} {
		t.Run(name, check)
	}
}

func (v verdict) turns(t *testing.T) {
	in := map[string][]string{}
	works := map[string]string{}
	for _, j := range v.journals {
		turn := j.GetTurn()
		require.Equal(t, "delivered", turn.GetOutcome(), "turn %s of %s: %s %s; %s", turn.GetTurnId(), turn.GetSeat(), turn.GetErrorKind(), turn.GetSummary(), lastCall(j))
		require.NotContains(t, works, turn.GetWorkKey(), "the work of turn %s is that of turn %s, too", turn.GetTurnId(), works[turn.GetWorkKey()])
		works[turn.GetWorkKey()] = turn.GetTurnId()
		for _, m := range j.GetMail() {
			require.Equal(t, "done", m.GetState())
			require.Equal(t, turn.GetTurnId(), m.GetTurnId())
			for _, name := range namesIn(m.GetBody()) {
				in[name] = append(in[name], turn.GetTurnId())
				q := v.questions[name]
				require.Equal(t, fmt.Sprintf("seat-%d", q.seat), turn.GetSeat(), name)
				require.Equal(t, q.conversation, turn.GetConversationKey(), name)
			}
		}
	}
	for name := range v.questions {
		require.Len(t, in[name], 1, "%s was worked on in turns %v", name, in[name])
	}
	require.Len(t, in, len(v.questions))
}

// namesOf answers the questions that a turn is about.
func namesOf(j *turnv1.GetTurnResponse) []string {
	var bodies []string
	for _, m := range j.GetMail() {
		bodies = append(bodies, m.GetBody())
	}
	return namesIn(strings.Join(bodies, " "))
}

func (v verdict) answers(t *testing.T) {
	found := map[string][]string{}
	for _, c := range v.vendors.GitHub.Comments() {
		for n := range crowd {
			if c.Login == crowdLogin(n) {
				where := fmt.Sprintf("seat-%d github:%s#%s", n, c.Repo, c.Place)
				found[where] = append(found[where], strings.Join(namesIn(c.Body), " "))
			}
		}
	}
	for _, m := range v.vendors.Slack.Posted() {
		for n := range crowd {
			if m.User == crowdSlackUser(n) {
				where := fmt.Sprintf("seat-%d slack:%s/%s/%s", n, crowdTeam, m.Channel, m.ThreadTS)
				found[where] = append(found[where], strings.Join(namesIn(m.Text), " "))
			}
		}
	}
	expected := map[string][]string{}
	for _, j := range v.journals {
		where := j.GetTurn().GetSeat() + " " + j.GetTurn().GetConversationKey()
		expected[where] = append(expected[where], strings.Join(namesOf(j), " "))
	}
	for _, where := range slices.Sorted(maps.Keys(expected)) {
		require.ElementsMatch(t, expected[where], found[where], where)
		delete(found, where)
	}
	require.Empty(t, found, "answers where nobody asked")
}

func (v verdict) filed(t *testing.T) {
	var items, pages []string
	for cursor := ""; ; {
		var list struct {
			Items []struct {
				Key, Title string
			} `json:"items"`
			Next string `json:"next_cursor"`
		}
		v.record.call(t, "list_work_items", object{"limit": 100, "sort": "created", "cursor": cursor}, &list)
		for _, item := range list.Items {
			var whole struct {
				Comments []struct{ Body string } `json:"comments"`
			}
			v.record.call(t, "get_work_item", object{"item": item.Key, "include": []string{"comments"}}, &whole)
			require.Len(t, whole.Comments, 1, "%s %q", item.Key, item.Title)
			items = append(items, item.Title)
		}
		if cursor = list.Next; cursor == "" {
			break
		}
	}
	for after := ""; ; {
		var list struct {
			Pages []struct {
				Title   string
				Version int
			} `json:"pages"`
			Next string `json:"next_cursor"`
		}
		v.record.call(t, "list_pages", object{"container": "OPS", "limit": 500, "after": after}, &list)
		for _, page := range list.Pages {
			require.Equal(t, 1, page.Version, page.Title)
			pages = append(pages, page.Title)
		}
		if after = list.Next; after == "" {
			break
		}
	}
	var expectedItems, expectedPages []string
	for _, j := range v.journals {
		names := namesOf(j)
		expectedItems = append(expectedItems, "Look into "+names[len(names)-1])
		expectedPages = append(expectedPages, "Notes on "+names[len(names)-1])
	}
	require.ElementsMatch(t, expectedItems, items)
	require.ElementsMatch(t, expectedPages, pages)
}

// paid reads from the ids of calls which of the model's answers the journals hold. A question is put again only if its answer
// was lost before it was journaled, so of the answers to one question the last is journaled, alone.
func (v verdict) paid(t *testing.T) {
	journaled := map[string]bool{}
	for _, j := range v.journals {
		for _, r := range j.GetRounds() {
			answer, _, _ := strings.Cut(r.GetCalls()[0].GetCallId(), "-")
			require.NotContains(t, journaled, answer, "one answer stands in two journals")
			journaled[answer] = true
		}
	}
	answered := map[string]bool{}
	lost := 0
	for _, bill := range v.bills {
		require.NotContains(t, answered, bill.Request, "asked again although the answer was journaled: %v", bill.Answer)
		answer, _, _ := strings.Cut(bill.Answer.Calls[0].ID, "-")
		if journaled[answer] {
			answered[bill.Request] = true
			delete(journaled, answer)
		} else {
			lost++
		}
	}
	require.Empty(t, journaled, "answers that nobody was billed for")
	require.LessOrEqual(t, lost, v.lost, "answers were lost that no kill explains")
}

// audited waits until the audit knows every call of the journals: what the registry held when it was killed is given back to it.
func (v verdict) audited(t *testing.T) {
	t.Helper()
	require.Eventually(t, func() bool { return v.unaudited(t) == 0 }, time.Minute, 100*time.Millisecond, "calls are missing from the audit")
}

// unaudited counts the calls of the journals that the audit does not know.
func (v verdict) unaudited(t *testing.T) int {
	t.Helper()
	missing := 0
	for _, j := range v.journals {
		audit, err := v.record.registry.ListCalls(t.Context(), &toolregistryv1.ListCallsRequest{TurnId: j.GetTurn().GetTurnId(), Limit: 200})
		require.NoError(t, err)
		known := map[string]bool{"submit_work": true} // the engine's own
		for _, c := range audit.GetCalls() {
			known[c.GetCallId()] = true
		}
		for _, r := range j.GetRounds() {
			for _, c := range r.GetCalls() {
				if !known[c.GetCallId()] && !known[c.GetTool()] {
					missing++
				}
			}
		}
	}
	return missing
}

// told waits until what the seats wrote has gone through notification, and looks that nothing was lost there and nothing doubled.
func (v verdict) told(t *testing.T) {
	conn, err := pgx.Connect(t.Context(), v.database)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	read := func(query string) (list []string) {
		rows, err := conn.Query(t.Context(), query)
		require.NoError(t, err)
		list, err = pgx.CollectRows(rows, pgx.RowTo[string])
		require.NoError(t, err)
		return list
	}
	notices := func() []string {
		return read("select item_key || ' ' || kind || ' ' || person from notification.notices")
	}
	var want []string
	for _, key := range read("select project || '-' || number from tracker.items") {
		want = append(want, key+" created owner", key+" comment owner")
	}
	require.Eventually(t, func() bool { return len(notices()) >= len(want) }, time.Minute, 100*time.Millisecond, "the lead was not told of everything")
	require.ElementsMatch(t, want, notices())
}

// settled waits until every event has left: what is told of the last writes leaves after them.
func (v verdict) settled(t *testing.T) {
	require.Eventually(t, func() bool { return len(v.waiting(t, "outbox", "sent_at is null")) == 0 }, time.Minute, 100*time.Millisecond,
		"events have not left")
	require.Empty(t, v.record.deadLetters(t))
	require.Empty(t, v.waiting(t, "dead_letters", "true"))
}

// waiting answers the schemas whose table of a name has rows of which something holds.
func (v verdict) waiting(t *testing.T, table, what string) (found []string) {
	conn, err := pgx.Connect(t.Context(), v.database)
	require.NoError(t, err)
	defer conn.Close(context.WithoutCancel(t.Context()))
	rows, err := conn.Query(t.Context(), "select table_schema from information_schema.tables where table_name = $1", table)
	require.NoError(t, err)
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.NotEmpty(t, schemas, table)
	for _, schema := range schemas {
		var count int
		name := pgx.Identifier{schema, table}.Sanitize()
		require.NoError(t, conn.QueryRow(t.Context(), "select count(*) from "+name+" where "+what).Scan(&count))
		if count > 0 {
			found = append(found, name)
		}
	}
	return found
}

// summary counts.
func (v verdict) summary(t *testing.T) string {
	t.Helper()
	var resumed, calls, again, unknown, rounds, looked int
	for _, j := range v.journals {
		if j.GetTurn().GetResumes() > 0 {
			resumed++
		}
		rounds += len(j.GetRounds())
		for _, r := range j.GetRounds() {
			for _, c := range r.GetCalls() {
				calls++
				switch c.GetState() {
				case "failed":
					again++
				case "unknown":
					unknown++
				case "done":
					if c.GetTool() == "service_status" {
						looked++
					}
				}
			}
		}
	}
	return fmt.Sprintf("%d turns, %d of them resumed; %d answers journaled, %d billed; %d tool calls, %d failed, %d in doubt, %d of the MCP server",
		len(v.journals), resumed, rounds, len(v.bills), calls, again, unknown, looked)
}

// lastCall tells of the last call of a journal.
func lastCall(j *turnv1.GetTurnResponse) string {
	told := "no call"
	for _, r := range j.GetRounds() {
		for _, c := range r.GetCalls() {
			told = fmt.Sprintf("%s is %s: %s", c.GetTool(), c.GetState(), c.GetResult())
		}
	}
	return told
}
