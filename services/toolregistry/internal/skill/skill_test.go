package skill_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/skill"
)

func page(front, body string) skill.Page {
	return skill.Page{ID: "p1", Title: "A page", Body: "---\n" + front + "\n---\n" + body}
}

const good = "key: push\ntrigger: {tool: push}\nsummary: How we push."

func TestAPageWithAKeyATriggerAndASummaryIsASkill(t *testing.T) {
	t.Parallel()
	set := skill.Read([]skill.Page{page(good, "Ask first.\n")}, nil)
	require.Empty(t, set.Refused)
	s, ok := set.Lookup("push")
	require.True(t, ok)
	require.Equal(t, []string{"A page", "How we push.", "Ask first.", "p1"}, []string{s.Title, s.Summary, s.Body, s.PageID})
	require.True(t, s.Required, "a skill is required unless it says otherwise")
	require.Equal(t, []string{"execute", "review", "subagent"}, s.Phases)

	set = skill.Read([]skill.Page{page(good+"\nrequired: false\nphases: [review]\ntitle: Pushing", "x")}, nil)
	s, _ = set.Lookup("push")
	require.False(t, s.Required)
	require.Equal(t, []string{"review"}, s.Phases)
	require.Equal(t, "Pushing", s.Title)
}

func TestSkillsAreInTheOrderOfTheirKeys(t *testing.T) {
	t.Parallel()
	set := skill.Read([]skill.Page{
		page("key: b\ntrigger: {tool: x}\nsummary: s", "t"), page("key: a\ntrigger: {tool: x}\nsummary: s", "t"),
	}, nil)
	require.Equal(t, []string{"a", "b"}, set.Keys())
	var none *skill.Set
	require.True(t, none.Empty())
	_, ok := none.Lookup("a")
	require.False(t, ok)
}

func TestAPageThatIsNoSkillIsRefusedWithTheReason(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		page skill.Page
		says string
	}{
		"no block":             {skill.Page{Body: "Just prose."}, "does not begin with a line of `---`"},
		"an open block":        {skill.Page{Body: "---\nkey: a\n"}, "no second line of `---`"},
		"no YAML":              {page("key: [", "x"), "cannot be read"},
		"an unknown key":       {page(good+"\nowner: me", "x"), "owner"},
		"a list for a key":     {page("key: [a]\ntrigger: {tool: x}\nsummary: s", "x"), "cannot be read"},
		"no key":               {page("trigger: {tool: x}\nsummary: s", "x"), "its key is missing"},
		"a key with blanks":    {page("key: a b\ntrigger: {tool: x}\nsummary: s", "x"), "its key is missing or not"},
		"no summary":           {page("key: a\ntrigger: {tool: x}", "x"), "its summary is missing"},
		"a long summary":       {page("key: a\ntrigger: {tool: x}\nsummary: "+strings.Repeat("s", 241), "x"), "has 241 bytes; at most 240"},
		"no text":              {page(good, " \n"), "its text is missing"},
		"a long text":          {page(good, strings.Repeat("x", 32<<10+1)), "has 32769 bytes; at most 32768"},
		"no trigger":           {page("key: a\nsummary: s", "x"), "has 0 of tool"},
		"two triggers":         {page("key: a\ntrigger: {tool: x, mcp_server: y}\nsummary: s", "x"), "has 2 of tool"},
		"an empty list":        {page("key: a\ntrigger: {any_of: []}\nsummary: s", "x"), "list is empty"},
		"lists in lists":       {page("key: a\ntrigger: {any_of: [{all_of: [{tool: x}]}]}\nsummary: s", "x"), "nests any_of or all_of"},
		"an empty member":      {page("key: a\ntrigger: {any_of: [{}]}\nsummary: s", "x"), "has 0 of tool"},
		"a phase of elsewhere": {page(good+"\nphases: [plan]", "x"), `"plan" is not one of`},
		"no phases":            {page(good+"\nphases: []", "x"), "an empty list"},
		"an anchor":            {page("key: &a a\ntrigger: {tool: x}\nsummary: *a", "x"), "anchors, aliases and tags"},
		"a block without end":  {page(good+"\n#"+strings.Repeat("x", 9<<10), "x"), "at most 8192 are read"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.page.ID, c.page.Title = "p9", "Nine"
			set := skill.Read([]skill.Page{c.page}, nil)
			require.Empty(t, set.Skills)
			require.Len(t, set.Refused, 1)
			require.Equal(t, "p9", set.Refused[0].PageID)
			require.Contains(t, set.Refused[0].Reason, c.says)
		})
	}
	twice := skill.Read([]skill.Page{page(good, "one"), page(good, "two")}, nil)
	require.Equal(t, "one", twice.Skills[0].Body)
	require.Contains(t, twice.Refused[0].Reason, "the key `push` is that of the page \"A page\"")
}

func TestVariablesAreFilledInAndUnknownOnesStay(t *testing.T) {
	t.Parallel()
	set := skill.Read([]skill.Page{page(good, "See ${wiki}/x, ${nobody}, ${nobody} and $5 or ${1}.")}, map[string]string{"wiki": "https://w/${nobody}"})
	require.Equal(t, "See https://w/${nobody}/x, ${nobody}, ${nobody} and $5 or ${1}.", set.Skills[0].Body, "a value is not filled again")
	require.Equal(t, []string{"the tool skill `push` names variables that skill_variables does not have: nobody"}, set.Warnings)
}

func TestATriggerFitsTheToolsOfASurface(t *testing.T) {
	t.Parallel()
	all := []skill.Tool{
		{Name: "gh_push", Raw: "push", Server: "gh"}, {Name: "gh_get", Raw: "get", Server: "gh"}, {Name: "get_page", Raw: "get_page"},
	}
	for trigger, want := range map[string][]string{
		"{tool: push}":     {"gh_push"},
		"{tool: gh_push}":  {"gh_push"},
		"{tool: pull}":     nil,
		"{mcp_server: gh}": {"gh_get", "gh_push"},
		"{mcp_server: gl}": nil,
		"{any_of: [{tool: pull}, {tool: get_page}]}":        {"get_page"},
		"{any_of: [{tool: push}, {mcp_server: gh}]}":        {"gh_get", "gh_push"},
		"{all_of: [{mcp_server: gh}, {tool: get_page}]}":    {"get_page", "gh_get", "gh_push"},
		"{all_of: [{mcp_server: gh}, {tool: create_page}]}": nil,
	} {
		set := skill.Read([]skill.Page{page("key: a\ntrigger: "+trigger+"\nsummary: s", "x")}, nil)
		require.Empty(t, set.Refused, trigger)
		require.Equal(t, want, set.Skills[0].Tools(all), trigger)
	}
}
