package api_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// put makes a document active and answers its revision.
func (b *bundle) put(document, parent string) *companyv1.Revision {
	b.t.Helper()
	out, err := b.company.PutCompany(operator(b.t), &companyv1.PutCompanyRequest{
		Document: document, Summary: "why", ParentRevisionId: parent, IfMatch: true,
	})
	require.NoError(b.t, err)
	return out.GetRevision()
}

// events answers the announcements in the outbox, in order.
func (b *bundle) events() []*companyv1.RevisionEvent {
	b.t.Helper()
	rows, err := b.pool.Query(b.t.Context(), "select topic, key, payload from outbox order by id")
	require.NoError(b.t, err)
	defer rows.Close()
	var out []*companyv1.RevisionEvent
	for rows.Next() {
		var (
			topic, key string
			payload    []byte
			event      companyv1.RevisionEvent
		)
		require.NoError(b.t, rows.Scan(&topic, &key, &payload))
		require.Equal(b.t, "bullpen.company.revision.v1", topic)
		require.Equal(b.t, "active", key)
		require.NoError(b.t, proto.Unmarshal(payload, &event))
		out = append(out, &event)
	}
	require.NoError(b.t, rows.Err())
	return out
}

func TestPutCompany(t *testing.T) {
	t.Parallel()

	t.Run("makes a document active and announces it in the same transaction", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		first := b.put(lantern, "")
		require.Equal(t, int32(1), first.GetEpoch())
		require.True(t, first.GetActive())
		require.Equal(t, "operator:op-1", first.GetCreatedBy())
		require.Equal(t, "why", first.GetSummary())
		require.Empty(t, first.GetParentRevisionId())
		require.NotNil(t, first.GetActivateTime())
		require.Equal(t, uuid.Version(7), uuid.MustParse(first.GetRevisionId()).Version())

		second := b.put(variant("B"), first.GetRevisionId())
		require.Equal(t, int32(2), second.GetEpoch())
		require.Equal(t, first.GetRevisionId(), second.GetParentRevisionId())

		announced := b.events()
		require.Len(t, announced, 2)
		require.Equal(t, second.GetRevisionId(), announced[1].GetRevisionActivated().GetRevisionId())
		require.Equal(t, int32(2), announced[1].GetRevisionActivated().GetEpoch())
		require.Equal(t, int64(2), announced[1].GetSequence())
	})

	t.Run("answers unchanged for the document that is active", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		first := b.put(lantern, "")
		out, err := b.company.PutCompany(operator(t), &companyv1.PutCompanyRequest{Document: lantern, Summary: "again"})
		require.NoError(t, err)
		require.True(t, out.GetUnchanged())
		require.Equal(t, first.GetRevisionId(), out.GetRevision().GetRevisionId())
		require.Len(t, b.events(), 1)
	})

	t.Run("keeps the loser inert and names it", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		first := b.put(lantern, "")
		second := b.put(variant("B"), first.GetRevisionId())

		late := &companyv1.PutCompanyRequest{Document: variant("C"), Summary: "late", ParentRevisionId: first.GetRevisionId()}
		_, err := b.company.PutCompany(operator(t), late)
		f := refused(t, err, fault.StaleVersion)
		require.Equal(t, "REVISION_ADVANCED", f.Reason)
		require.Equal(t, second.GetRevisionId(), f.Facts["current_revision_id"])
		stored := f.Facts["stored_revision_id"]

		kept, err := b.company.GetDocument(operator(t), &companyv1.GetDocumentRequest{RevisionId: stored})
		require.NoError(t, err)
		require.Equal(t, variant("C"), kept.GetDocument())
		require.False(t, kept.GetRevision().GetActive())
		require.Zero(t, kept.GetRevision().GetEpoch())
		require.Nil(t, kept.GetRevision().GetActivateTime())
		require.Len(t, b.events(), 2)

		_, err = b.company.PutCompany(operator(t), late)
		require.Equal(t, stored, refused(t, err, fault.StaleVersion).Facts["stored_revision_id"], "kept once")
	})

	t.Run("refuses a first that demands nothing active when something is", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		b.put(lantern, "")
		_, err := b.company.PutCompany(operator(t), &companyv1.PutCompanyRequest{Document: variant("B"), Summary: "x", IfMatch: true})
		require.NotEmpty(t, refused(t, err, fault.StaleVersion).Facts["stored_revision_id"])
	})

	t.Run("refuses a parent that is no id and one that does not exist", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		b.put(lantern, "")
		_, err := b.company.PutCompany(operator(t), &companyv1.PutCompanyRequest{Document: variant("B"), Summary: "x", ParentRevisionId: "7"})
		require.Equal(t, "parent_revision_id", refused(t, err, fault.Invalid).Field)
		_, err = b.company.PutCompany(operator(t), &companyv1.PutCompanyRequest{
			Document: variant("B"), Summary: "x", ParentRevisionId: uuid.NewString(),
		})
		require.Equal(t, "parent_revision_id", refused(t, err, fault.NotFound).Field)
	})

	t.Run("refuses a document with problems and stores nothing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		document := "name: Co\nroles: [{nam: A}]\nmision: x\na: 1\nb: 2\nc: 3\n"
		_, err := b.company.PutCompany(operator(t), &companyv1.PutCompanyRequest{Document: document, Summary: "x"})
		f := refused(t, err, fault.Invalid)
		require.Equal(t, "document", f.Field)
		require.Equal(t, "6", f.Facts["problems"])
		require.Contains(t, f.Message, "3:1: mision: unknown key `mision`; did you mean `mission`?")
		require.Contains(t, f.Message, "1 more; CheckCompany lists them all")
		var n int
		require.NoError(t, b.pool.QueryRow(t.Context(), "select count(*) from revisions").Scan(&n))
		require.Zero(t, n)
	})

	t.Run("is one write however often the operation is repeated", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		ctx := rpc.WithOperation(operator(t), "op-123")
		req := &companyv1.PutCompanyRequest{Document: lantern, Summary: "x"}
		first, err := b.company.PutCompany(ctx, req)
		require.NoError(t, err)
		b.put(variant("B"), first.GetRevision().GetRevisionId())
		again, err := b.company.PutCompany(ctx, req)
		require.NoError(t, err)
		require.Equal(t, first.GetRevision().GetRevisionId(), again.GetRevision().GetRevisionId())
		require.Len(t, b.events(), 2)
		_, err = b.company.PutCompany(ctx, &companyv1.PutCompanyRequest{Document: variant("C"), Summary: "x"})
		require.Equal(t, "OPERATION_REUSED", refused(t, err, fault.Conflict).Reason)
	})
}

// However many write on top of the same revision, one of them becomes active, and what the others wrote is kept.
func TestOf64ConcurrentWritersOfOneParentExactlyOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	const writers, rounds = 64, 3
	parent := b.put(lantern, "").GetRevisionId()
	for round := range rounds {
		var (
			wg      sync.WaitGroup
			mu      sync.Mutex
			winners []string
			losers  = map[string]bool{}
		)
		ctx := operator(t)
		for i := range writers {
			wg.Go(func() {
				out, err := b.company.PutCompany(ctx, &companyv1.PutCompanyRequest{
					Document: variant(fmt.Sprintf("%d-%d", round, i)), Summary: "race", ParentRevisionId: parent, IfMatch: true,
				})
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					winners = append(winners, out.GetRevision().GetRevisionId())
					return
				}
				if f := rpc.FromError(err); f.Class == fault.StaleVersion {
					losers[f.Facts["stored_revision_id"]] = true
				}
			})
		}
		wg.Wait()
		require.Len(t, winners, 1)
		require.Len(t, losers, writers-1)
		parent = winners[0]
	}
	active, err := b.company.GetCompany(operator(t), &companyv1.GetCompanyRequest{})
	require.NoError(t, err)
	require.Equal(t, parent, active.GetCompany().GetRevisionId())
	require.Equal(t, int32(rounds+1), active.GetCompany().GetEpoch())
	announced := b.events()
	require.Len(t, announced, rounds+1)
	for i, e := range announced {
		require.Equal(t, int64(i+1), e.GetSequence(), "announced in the order of epochs")
	}
}

func TestReadingTheCompany(t *testing.T) {
	t.Parallel()

	t.Run("before the first revision there is none", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		_, err := b.company.GetCompany(operator(t), &companyv1.GetCompanyRequest{})
		require.Equal(t, "NO_ACTIVE_REVISION", refused(t, err, fault.NotFound).Reason)
		_, err = b.company.GetDocument(operator(t), &companyv1.GetDocumentRequest{})
		require.Equal(t, "NO_ACTIVE_REVISION", refused(t, err, fault.NotFound).Reason)
		_, err = b.company.LookupColleague(operator(t), &companyv1.LookupColleagueRequest{Query: "ada"})
		require.Equal(t, "NO_ACTIVE_REVISION", refused(t, err, fault.NotFound).Reason)
	})

	t.Run("inheritance is resolved and pointers stand as written", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{env: map[string]string{"BOT": "hunter2", "GH": "hunter2", "LLM_KEY": "hunter2"}})
		r := b.put(lantern, "")
		out, err := b.company.GetCompany(as(t, rpc.KindPerson, "ines-rocha"), &companyv1.GetCompanyRequest{})
		require.NoError(t, err)
		c := out.GetCompany()
		require.Equal(t, r.GetRevisionId(), c.GetRevisionId())
		require.Equal(t, []string{"ines-rocha", "ops-lead", "ops-engineer"}, handles(c))
		lead := c.GetSeats()[1]
		require.Equal(t, map[string]string{"TEAM": "ops", "BOT_TOKEN": "Bearer ${BOT}"}, lead.GetMcpEnv()["chat"].GetVariables())
		require.Equal(t, "${GH}", lead.GetGithub().GetToken())
		require.Equal(t, "lantern-ops", lead.GetContacts()["github_login"])
		require.Equal(t, []string{"big"}, lead.GetLlm()["default"].GetProviders())
		require.Equal(t, []string{"ops-engineer"}, lead.GetManages())
		require.Equal(t, "ops-lead", c.GetUnits()[0].GetLead())
		require.Equal(t, []string{"${LLM_KEY}"}, c.GetLlmProviders()[0].GetApiKeys())
		hints := c.GetMcpServers()[0].GetToolAnnotations()["post"]
		require.False(t, hints.GetReadOnly())
		require.True(t, hints.GetOpenWorld())
		require.Nil(t, hints.Destructive) // not said is not false
		require.Equal(t, int32(24), c.GetTurnEngine().GetMaxToolRounds())
		require.NotContains(t, c.String(), "hunter2")
	})

	t.Run("an old revision is read by its id", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		first := b.put(lantern, "")
		b.put(variant("B"), first.GetRevisionId())
		out, err := b.company.GetCompany(operator(t), &companyv1.GetCompanyRequest{RevisionId: first.GetRevisionId()})
		require.NoError(t, err)
		require.Equal(t, "Tidewater Ltd", out.GetCompany().GetName())
		require.Equal(t, int32(1), out.GetCompany().GetEpoch())
		_, err = b.company.GetCompany(operator(t), &companyv1.GetCompanyRequest{RevisionId: uuid.NewString()})
		require.Equal(t, "revision_id", refused(t, err, fault.NotFound).Field)
	})

	t.Run("a document comes back as it was written, byte for byte", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		text := "# a comment\r\nname:   'Co'\r\nroles: [ {name: Áda} ]\r\n\r\n"
		b.put(text, "")
		out, err := b.company.GetDocument(operator(t), &companyv1.GetDocumentRequest{})
		require.NoError(t, err)
		require.Equal(t, text, out.GetDocument())
		require.True(t, out.GetRevision().GetActive())
	})

	t.Run("a revision of another build is refused with its first problem", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		r := b.put(lantern, "")
		_, err := b.pool.Exec(t.Context(), "update revisions set document = $1 where revision_id = $2",
			lantern+"future: true\n", r.GetRevisionId())
		require.NoError(t, err)
		other := setup(t, options{pool: b.pool})
		_, err = other.company.GetCompany(operator(t), &companyv1.GetCompanyRequest{})
		f := refused(t, err, fault.Unavailable)
		require.Equal(t, "REVISION_UNREADABLE", f.Reason)
		require.Contains(t, f.Message, "unknown key `future`")
	})

	t.Run("more revisions than are kept read are all answered", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		var ids []string
		parent := ""
		for i := range 12 {
			parent = b.put(variant(fmt.Sprint(i)), parent).GetRevisionId()
			ids = append(ids, parent)
		}
		for range 2 {
			for i, id := range ids {
				out, err := b.company.GetCompany(operator(t), &companyv1.GetCompanyRequest{RevisionId: id})
				require.NoError(t, err)
				require.Equal(t, fmt.Sprintf("Lantern %d", i), out.GetCompany().GetName())
			}
		}
	})
}

func handles(c *companyv1.Company) []string {
	var out []string
	for _, s := range c.GetSeats() {
		out = append(out, s.GetHandle())
	}
	return out
}

func TestListRevisions(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})
	var want []string
	parent := ""
	for i := range 7 {
		parent = b.put(variant(fmt.Sprint(i)), parent).GetRevisionId()
		want = append([]string{parent}, want...)
	}
	var got []string
	cursor := ""
	for {
		out, err := b.company.ListRevisions(operator(t), &companyv1.ListRevisionsRequest{Limit: 3, Cursor: cursor})
		require.NoError(t, err)
		require.LessOrEqual(t, len(out.GetRevisions()), 3)
		for _, r := range out.GetRevisions() {
			got = append(got, r.GetRevisionId())
			require.Equal(t, r.GetRevisionId() == want[0], r.GetActive())
		}
		if cursor = out.GetNextCursor(); cursor == "" {
			break
		}
	}
	require.Equal(t, want, got)

	_, err := b.company.ListRevisions(operator(t), &companyv1.ListRevisionsRequest{Cursor: "x"})
	require.Equal(t, "cursor", refused(t, err, fault.Invalid).Field)
}

func TestCheckCompany(t *testing.T) {
	t.Parallel()
	b := setup(t, options{})

	t.Run("answers every problem with its place and kind", func(t *testing.T) {
		t.Parallel()
		out, err := b.company.CheckCompany(operator(t), &companyv1.CheckCompanyRequest{Document: "name: Co\nroles:\n  - {name: A, kind: robot, x: 1}\n"})
		require.NoError(t, err)
		require.Len(t, out.GetProblems(), 2)
		p := out.GetProblems()[0]
		require.Equal(t, "roles[0].kind", p.GetPath())
		require.Equal(t, []int32{3, 15}, []int32{p.GetLine(), p.GetColumn()})
		require.Equal(t, "value", p.GetKind())
	})

	t.Run("answers nothing for one that may be put, and stores nothing", func(t *testing.T) {
		t.Parallel()
		out, err := b.company.CheckCompany(operator(t), &companyv1.CheckCompanyRequest{Document: lantern})
		require.NoError(t, err)
		require.Empty(t, out.GetProblems())
		_, err = b.company.GetCompany(operator(t), &companyv1.GetCompanyRequest{})
		refused(t, err, fault.NotFound)
	})

	t.Run("refuses more than 4 MiB before reading it", func(t *testing.T) {
		t.Parallel()
		_, err := b.company.CheckCompany(operator(t), &companyv1.CheckCompanyRequest{Document: strings.Repeat("#", 4<<20+1)})
		require.Equal(t, "document", refused(t, err, fault.Invalid).Field)
	})
}
