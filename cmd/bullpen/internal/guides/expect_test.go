package guides_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// item is what the pages show of a written work item.
type item struct {
	Key      string `json:"key"`
	Outcome  string `json:"outcome"`
	Position string `json:"position"`
}

// expectations answers what each block must print.
func expectations() map[string]func(*testing.T, *reader, string) {
	return map[string]func(*testing.T, *reader, string){
		"check": func(t *testing.T, _ *reader, out string) {
			require.Equal(t, "deploy/company.example.yaml is fine.\n", out)
		},
		"token": newToken,
		"curl": func(t *testing.T, _ *reader, out string) {
			var answer struct {
				Failed     bool   `json:"failed"`
				ResultJSON string `json:"result_json"`
				Receipt    item   `json:"receipt"`
			}
			decode(t, out, &answer)
			require.False(t, answer.Failed)
			require.Equal(t, "applied", answer.Receipt.Outcome)
			var written item
			decode(t, answer.ResultJSON, &written)
			require.Equal(t, "OPS-1", written.Key, "the page goes on with it")
		},
		"curl-typed": func(t *testing.T, _ *reader, out string) {
			var list struct {
				Total int `json:"total"`
				Items []struct {
					Key      string `json:"key"`
					Title    string `json:"title"`
					Reporter string `json:"reporter"`
				} `json:"items"`
			}
			decode(t, out, &list)
			require.Equal(t, 1, list.Total)
			require.Equal(t, "Renew the certificate", list.Items[0].Title)
			require.Equal(t, "ci", list.Items[0].Reporter, "the token is the author")
		},
		"buf": func(t *testing.T, _ *reader, out string) {
			var answer struct {
				Item item `json:"item"`
			}
			decode(t, out, &answer)
			require.Equal(t, "OPS-1", answer.Item.Key)
		},
		"go": func(t *testing.T, _ *reader, out string) {
			require.Regexp(t, `^OPS-\d+ applied\n$`, out)
		},
		"curl-again": func(t *testing.T, _ *reader, out string) {
			lines := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, lines, 2)
			var first, second item
			decode(t, lines[0], &first)
			decode(t, lines[1], &second)
			require.Equal(t, "applied", first.Outcome)
			require.Equal(t, first, second)
		},
		"curl-refused": func(t *testing.T, _ *reader, out string) {
			var refused struct {
				Code    string `json:"code"`
				Message string `json:"message"`
				Details []struct {
					Type  string `json:"type"`
					Debug struct {
						Class string `json:"class"`
						Field string `json:"field"`
					} `json:"debug"`
				} `json:"details"`
			}
			decode(t, out, &refused)
			require.Equal(t, "not_found", refused.Code)
			require.Contains(t, refused.Message, "OPS-999")
			require.Equal(t, "bullpen.tool.v1.Refusal", refused.Details[0].Type)
			require.Equal(t, "not_found", refused.Details[0].Debug.Class)
			require.Equal(t, "item", refused.Details[0].Debug.Field)
		},
		"import-dry": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, "2 read: 1 would be filed with 1 comment, 0 here already, 1 refused.")
			require.Regexp(t, `(?m)^1 +entry 2 +it has no number`, out)
			require.Contains(t, out, "ada has no handle here")
		},
		"import": func(t *testing.T, _ *reader, out string) {
			require.Equal(t, "1 read: 1 filed with 1 comment, 0 here already, 0 refused.\n", out)
		},
		"import-again": func(t *testing.T, _ *reader, out string) {
			require.Equal(t, "2 read: 1 filed with 0 comments, 1 here already, 0 refused.\n", out)
		},
		"tools-seat": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, "create_work_item")
			require.Contains(t, out, "mcp:status")
		},
		"servers": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, "status")
		},
		"tools-token": newToken,
		"act-token":   newToken,
		"server-put": func(t *testing.T, _ *reader, out string) {
			var answer struct {
				Valid    bool  `json:"valid"`
				Problems []any `json:"problems"`
			}
			decode(t, out, &answer)
			require.True(t, answer.Valid, out)
			require.Empty(t, answer.Problems)
		},
		"work-search": func(t *testing.T, _ *reader, out string) {
			var answer struct {
				Query    string `json:"query"`
				Complete bool   `json:"complete"`
			}
			decode(t, out, &answer)
			require.Equal(t, "invoice import", answer.Query)
		},
		"work-create": func(t *testing.T, _ *reader, out string) {
			var created struct {
				item
				Labels []string `json:"labels_created"`
			}
			decode(t, out, &created)
			require.Equal(t, "applied", created.Outcome)
			require.Equal(t, []string{"billing"}, created.Labels)
		},
		"work-read": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, `"billing"`)
			require.Contains(t, out, `"created"`)
		},
		"work-list": func(t *testing.T, _ *reader, out string) {
			require.True(t, strings.HasPrefix(out, "1\n"), out)
			require.Contains(t, out, "The invoice import stops at line 500")
		},
		"work-update": func(t *testing.T, _ *reader, out string) {
			var updated item
			decode(t, out, &updated)
			require.Equal(t, "applied", updated.Outcome)
		},
		"work-claim": func(t *testing.T, _ *reader, out string) {
			require.Regexp(t, `"key": "OPS-\d+"`, out)
			require.Regexp(t, `"until": "20`, out)
		},
		"work-ask": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, `"asked": "ada-reis"`)
		},
		"work-file": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, `"version": 1`)
			require.Contains(t, out, "Line 500 has a quote.")
		},
		"work-explain": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, "It was told:")
			require.Contains(t, out, "ada-reis")
		},
		"policy-explain": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, "allow")
		},
		"approvals": func(t *testing.T, _ *reader, out string) {
			require.Equal(t, "Nothing waits for a person.\n", out)
		},
		"calls": func(t *testing.T, _ *reader, out string) {
			require.Equal(t, "No such calls.\n", out)
		},
		"skill-page": func(t *testing.T, _ *reader, out string) {
			require.Contains(t, out, `"container":"TS"`)
		},
		"operator-mcp": func(t *testing.T, _ *reader, out string) {
			var answer struct {
				Result struct {
					IsError           bool `json:"isError"`
					StructuredContent struct {
						item
						OpID string `json:"op_id"`
					} `json:"structuredContent"`
				} `json:"result"`
			}
			decode(t, out, &answer)
			require.False(t, answer.Result.IsError, out)
			require.Equal(t, "applied", answer.Result.StructuredContent.Outcome)
			require.NotEmpty(t, answer.Result.StructuredContent.OpID)
		},
		"act": func(t *testing.T, _ *reader, out string) {
			lines := strings.Split(strings.TrimSpace(out), "\n")
			require.Len(t, lines, 2)
			type answer struct {
				Tool     string `json:"tool"`
				Outcome  string `json:"outcome"`
				Position string `json:"position"`
			}
			var first, second answer
			decode(t, lines[0], &first)
			decode(t, lines[1], &second)
			require.Equal(t, "create_work_item", first.Tool)
			require.Equal(t, "applied", first.Outcome)
			require.Equal(t, first, second)
		},
	}
}

// newToken gives the reader the token that a block printed.
func newToken(t *testing.T, r *reader, out string) {
	r.token = strings.TrimSpace(out)
	require.Regexp(t, `^bp_[\w-]{40,}$`, r.token)
}

func decode(t *testing.T, text string, into any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), into), text)
}

func TestTheClassesOfRefusalsAreThoseThatThereAre(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile(filepath.Join(root, "docs", "guides", "integrate.md"))
	require.NoError(t, err)
	_, section, found := strings.Cut(string(raw), "## When a call is refused")
	require.True(t, found)
	rows := regexp.MustCompile("(?m)^\\| `([a-z_]+)` \\|").FindAllStringSubmatch(section, -1)
	require.NotEmpty(t, rows)
	for _, row := range rows {
		require.Contains(t, fault.Classes(), fault.Class(row[1]))
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)#\s]*)(?:#[^)\s]*)?\)`)
	fenced = regexp.MustCompile("(?ms)^```.*?^```$")
)

func TestLinksBetweenPagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	var checked int
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/*/*.md", "deploy/*/*.md", "services/*/*.md", "tools/*.md"} {
		found, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, page := range found {
			raw, err := os.ReadFile(page)
			require.NoError(t, err)
			for _, match := range link.FindAllStringSubmatch(fenced.ReplaceAllString(string(raw), ""), -1) {
				if target := match[1]; target != "" && !strings.Contains(target, "://") && !strings.HasPrefix(target, "mailto:") {
					_, err := os.Stat(filepath.Join(filepath.Dir(page), target))
					require.NoError(t, err, "%s leads to %s", page, target)
					checked++
				}
			}
		}
	}
	require.Positive(t, checked)
}
