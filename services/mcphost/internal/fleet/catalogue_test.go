package fleet

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

func TestAToolIsRepeatableWhenTheOperatorOrElseTheServerSaysSo(t *testing.T) {
	t.Parallel()
	reads, writes := `{"annotations":{"readOnlyHint":true}}`, `{"annotations":{"readOnlyHint":false,"idempotentHint":null}}`
	yes, no := &companyv1.ToolAnnotations{ReadOnly: proto.Bool(true)}, &companyv1.ToolAnnotations{ReadOnly: proto.Bool(false)}
	for name, c := range map[string]struct {
		tool     string
		operator map[string]*companyv1.ToolAnnotations
		want     bool
	}{
		"a tool that says nothing is not":         {`{}`, nil, false},
		"hints of another shape say nothing":      {`{"annotations":{"readOnlyHint":"true"}}`, nil, false},
		"one that reads is":                       {reads, nil, true},
		"one that writes is not":                  {writes, nil, false},
		"one that may be done twice is":           {`{"annotations":{"idempotentHint":true}}`, nil, true},
		"the operator knows better that it reads": {writes, map[string]*companyv1.ToolAnnotations{"get": yes}, true},
		"or that it does not":                     {reads, map[string]*companyv1.ToolAnnotations{"get": no}, false},
		"by the prefixed name, too":               {reads, map[string]*companyv1.ToolAnnotations{"gh_get": no}, false},
		"the raw name comes first":                {reads, map[string]*companyv1.ToolAnnotations{"gh_get": no, "get": yes}, true},
		"of another tool it says nothing":         {reads, map[string]*companyv1.ToolAnnotations{"put": no}, true},
	} {
		s := &companyv1.McpServer{ToolPrefix: "gh_", ToolAnnotations: c.operator}
		require.Equal(t, c.want, repeatable(s, "get", hintsOf(json.RawMessage(c.tool))), name)
	}
}

func TestAToolsOwnLimitStandsForTheServers(t *testing.T) {
	t.Parallel()
	s := &companyv1.McpServer{ToolPrefix: "gh_", RequestTimeoutSeconds: 20, ToolTimeoutSeconds: map[string]int32{"build": 900, "gh_look": 2}}
	for tool, want := range map[string][2]time.Duration{
		"build": {900 * time.Second, 900 * time.Second}, "look": {2 * time.Second, 2 * time.Second}, "other": {20 * time.Second, 0},
	} {
		idle, all := limits(s, tool)
		require.Equal(t, want, [2]time.Duration{idle, all}, tool)
	}
	idle, all := limits(&companyv1.McpServer{}, "any")
	require.Equal(t, [2]time.Duration{defaultCall, 0}, [2]time.Duration{idle, all})
}
