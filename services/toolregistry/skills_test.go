package toolregistry_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	knowledgev1 "github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/knowledge/v1/knowledgev1connect"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/bus"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// library plays the knowledge base, whose pages are all in the skills container.
type library struct {
	knowledgev1connect.UnimplementedKnowledgeServiceHandler

	mu    sync.Mutex
	pages []*knowledgev1.Page
}

func (l *library) ListPages(context.Context, *knowledgev1.ListPagesRequest) (*knowledgev1.ListPagesResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return &knowledgev1.ListPagesResponse{Pages: l.pages, Complete: true}, nil
}

func (l *library) GetPage(_ context.Context, req *knowledgev1.GetPageRequest) (*knowledgev1.GetPageResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.pages {
		if p.GetId() == req.GetPage() {
			return &knowledgev1.GetPageResponse{Page: p}, nil
		}
	}
	return nil, fault.New(fault.NotFound, "no such page")
}

// publish puts pages into the library and says so.
func (w *world) publish(t *testing.T, pages ...*knowledgev1.Page) {
	t.Helper()
	w.library.mu.Lock()
	w.library.pages = pages
	w.library.mu.Unlock()
	require.NoError(t, w.bus.Publish(t.Context(), bus.Message{Topic: "bullpen.knowledge.page.v1", Key: "p", Value: []byte("x")}))
}

func pageOf(id, text string) *knowledgev1.Page {
	return &knowledgev1.Page{Id: id, Title: "Page " + id, Body: &text, Version: 1}
}

const creating = "---\nkey: creating\ntrigger: {tool: create_work_item}\nsummary: How items are filed.\n---\nSee ${wiki}.\n"

// withSkills is a company that keeps tool skills.
func withSkills() *companyv1.Company {
	c := companyOf()
	c.KnowledgeBackend, c.SkillsContainer, c.SkillVariables = "native", "TS", map[string]string{"wiki": "https://wiki.example"}
	return c
}

// skilled is a registry with what is published in force.
func skilled(t *testing.T, pages ...*knowledgev1.Page) *world {
	t.Helper()
	w := build(t, options{bus: true, company: withSkills()})
	w.publish(t, pages...)
	require.Eventually(t, func() bool {
		listed, err := w.console.ListToolSkills(asOperator(t.Context()), &toolregistryv1.ListToolSkillsRequest{})
		return err == nil && len(listed.GetSkills())+len(listed.GetRefused()) == len(pages)
	}, time.Minute, 5*time.Millisecond)
	return w
}

func TestAPublishedSkillIsListedAndLoaded(t *testing.T) {
	t.Parallel()
	w := skilled(t, pageOf("1", creating), pageOf("2", "---\nkey: other\ntrigger: {tool: nobody_has_it}\nsummary: s\n---\nx"), pageOf("3", "Just prose."))
	all, err := w.console.ListToolSkills(asOperator(t.Context()), &toolregistryv1.ListToolSkillsRequest{})
	require.NoError(t, err)
	require.Len(t, all.GetSkills(), 2)
	require.Equal(t, "3", all.GetRefused()[0].GetPageId())
	require.Contains(t, all.GetRefused()[0].GetReason(), "does not begin with a line of `---`")

	own, err := w.turn.ListToolSkills(asSeat(t.Context()), &toolregistryv1.ListToolSkillsRequest{})
	require.NoError(t, err)
	require.Len(t, own.GetSkills(), 1, "a seat sees the skills of its own tools")
	require.Empty(t, own.GetRefused())
	s := own.GetSkills()[0]
	require.Equal(t, []string{"creating", "Page 1", "How items are filed.", "1"}, []string{s.GetKey(), s.GetTitle(), s.GetSummary(), s.GetPageId()})
	require.Equal(t, []string{"create_work_item"}, s.GetTools())
	require.True(t, s.GetRequired())

	answer, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "load_tool_skill", ArgumentsJson: `{"key":"creating"}`})
	require.NoError(t, err)
	require.JSONEq(t, `{"key":"creating","title":"Page 1","body":"See https://wiki.example."}`, answer.GetText())
	_, err = w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "load_tool_skill", ArgumentsJson: `{"key":"create"}`})
	f := refusal(t, err)
	require.Equal(t, fault.NotFound, f.Class)
	require.Contains(t, f.Message, "there are `creating`, `other`")

	_, err = w.turn.LoadToolSkill(asSeat(t.Context()), &toolregistryv1.LoadToolSkillRequest{Key: "creating"})
	require.Equal(t, fault.Forbidden, refusal(t, err).Class, "a tool is called through the door")
}

func TestTheLoaderIsListedWhileThereIsSomethingToLoad(t *testing.T) {
	t.Parallel()
	w := build(t, options{bus: true, company: withSkills()})
	has := func() bool {
		listed, err := w.turn.ListTools(asSeat(t.Context()), &toolregistryv1.ListToolsRequest{})
		require.NoError(t, err)
		for _, tool := range listed.GetTools() {
			if tool.GetName() == "load_tool_skill" {
				return true
			}
		}
		return false
	}
	require.False(t, has())
	w.publish(t, pageOf("1", creating))
	require.Eventually(t, has, time.Minute, 5*time.Millisecond)
	w.publish(t)
	require.Eventually(t, func() bool { return !has() }, time.Minute, 5*time.Millisecond)
}

func TestSkillsThatNobodyHasReadYetAreNotTakenForNone(t *testing.T) {
	t.Parallel()
	w := build(t, options{still: true, company: withSkills()})
	_, err := w.turn.ListToolSkills(asSeat(t.Context()), &toolregistryv1.ListToolSkillsRequest{})
	require.Equal(t, fault.Unavailable, refusal(t, err).Class)
	plain := build(t, options{still: true})
	none, err := plain.turn.ListToolSkills(asSeat(t.Context()), &toolregistryv1.ListToolSkillsRequest{})
	require.NoError(t, err)
	require.Empty(t, none.GetSkills())
	_, err = plain.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "load_tool_skill", ArgumentsJson: `{"key":"x"}`})
	f := refusal(t, err)
	require.Equal(t, fault.Unavailable, f.Class)
	require.Contains(t, f.Message, "`tool_skills`")
}

// summarizing is a company whose results are summarised.
func summarizing() *companyv1.Company {
	c := companyOf()
	c.ToolResults = &companyv1.ToolResults{Mode: "summarize"}
	return c
}

func TestASeatReadsItsOwnResultPageAfterPage(t *testing.T) {
	t.Parallel()
	w := build(t, options{bus: true, company: summarizing()})
	var long strings.Builder
	for i := range 4000 {
		fmt.Fprintf(&long, "line %d: ünïcödé\n", i)
	}
	w.neighbours.bring("ada", &mcphostv1.ListServerToolsResponse{Digest: "d", Servers: []*mcphostv1.ServerTools{
		{Server: "gh", State: "ready", Own: true, ToolsJson: []string{`{"name":"get","inputSchema":{"type":"object"}}`}},
	}})
	w.neighbours.call = func(context.Context, *mcphostv1.CallServerToolRequest) (*mcphostv1.CallServerToolResponse, error) {
		text, err := json.Marshal(long.String())
		require.NoError(t, err)
		return &mcphostv1.CallServerToolResponse{ResultJson: `{"content":[{"type":"text","text":` + string(text) + `}]}`}, nil
	}
	made, err := w.turn.CallTool(asSeat(t.Context()), &toolregistryv1.CallToolRequest{Tool: "get"})
	require.NoError(t, err)
	require.Equal(t, long.String(), made.GetText())

	read := func(ctx context.Context, ref string, offset int) (*toolregistryv1.ReadToolResultResponse, error) {
		answer, err := w.turn.CallTool(ctx, &toolregistryv1.CallToolRequest{
			Tool: "read_tool_result", ArgumentsJson: fmt.Sprintf(`{"call_ref":%q,"offset":%d}`, ref, offset),
		})
		if err != nil {
			return nil, err
		}
		var page struct {
			Text       string
			Size       int32
			NextOffset *int32 `json:"next_offset"`
		}
		require.NoError(t, json.Unmarshal([]byte(answer.GetText()), &page))
		return &toolregistryv1.ReadToolResultResponse{Text: page.Text, Size: page.Size, NextOffset: page.NextOffset}, nil
	}
	var whole strings.Builder
	for offset := 0; ; {
		page, err := read(asSeat(t.Context()), made.GetAuditId(), offset)
		require.NoError(t, err)
		require.LessOrEqual(t, len(page.GetText()), 48<<10)
		require.True(t, strings.HasSuffix(page.GetText(), "\n"), "a page ends behind a line")
		require.Equal(t, int32(long.Len()), page.GetSize())
		whole.WriteString(page.GetText())
		if page.NextOffset == nil {
			break
		}
		offset = int(page.GetNextOffset())
	}
	require.Equal(t, long.String(), whole.String())

	asBo := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindSeat, Id: "bo", Seat: "bo", Turn: turnClaims()})
	for name, err := range map[string]error{
		"another seat's": second(read(asBo, made.GetAuditId(), 0)),
		"nobody's":       second(read(asSeat(t.Context()), uuid.NewString(), 0)),
	} {
		f := refusal(t, err)
		require.Equal(t, fault.NotFound, f.Class, name)
		require.Contains(t, f.Message, "No call of yours", name)
	}
	for _, offset := range []int{9, long.Len() + 1} {
		require.Equal(t, "offset", refusal(t, second(read(asSeat(t.Context()), made.GetAuditId(), offset))).Field)
	}
}

func second[A any](_ A, err error) error { return err }
