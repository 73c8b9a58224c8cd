package document_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/company/internal/document"
)

func TestInheritance(t *testing.T) {
	t.Parallel()
	company, problems := document.Parse(`
name: Co
mcp_servers:
  - {name: chat, shared: false, command: c}
  - {name: code, shared: false, transport: http, url: "https://code.example"}
roles:
  - {name: Ines, kind: human, contact: {x: ines}, manages: [Ops Lead]}
units:
  - name: Operations
    lead: Ops Lead
    channel: ops
    mcp_env: {chat: {URL: unit, TEAM: ops}, code: {X-Team: ops}}
    roles:
      - {name: Ops Lead}
      - {name: Engineer, mcp_env: {chat: {URL: own}}}
      - {name: Rui, kind: human, contact: {x: rui}}
    children:
      - {name: Night, roles: [{name: Owl}]}
      - {name: Field, lead: Rui, channel: field, roles: [{name: Scout, manages: [Night]}]}
`)
	require.Empty(t, problems)
	seats := map[string]document.Seat{}
	for _, s := range company.Seats {
		seats[s.Handle] = s
	}
	units := map[string]document.Unit{}
	for _, u := range company.Units {
		units[u.ID] = u
	}

	t.Run("a seat's own variable wins and the unit's others stay", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, map[string]map[string]string{
			"chat": {"URL": "own", "TEAM": "ops"}, "code": {"X-Team": "ops"},
		}, seats["engineer"].Env)
	})
	t.Run("a seat without any of its own has the unit's", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, map[string]map[string]string{
			"chat": {"URL": "unit", "TEAM": "ops"}, "code": {"X-Team": "ops"},
		}, seats["ops-lead"].Env)
	})
	t.Run("a person inherits no credential", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, seats["rui"].Env)
	})
	t.Run("a child unit inherits no credential", func(t *testing.T) {
		t.Parallel()
		require.Empty(t, seats["owl"].Env)
	})
	t.Run("lead and channel go down until a unit names its own", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, []string{"ops-lead", "ops"}, []string{units["night"].Lead, units["night"].Channel})
		require.Equal(t, []string{"rui", "field"}, []string{units["field"].Lead, units["field"].Channel})
	})
	t.Run("a lead manages the direct members whom nobody else manages", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, []string{"engineer", "rui"}, seats["ops-lead"].Manages)
		require.Equal(t, []string{"scout"}, seats["rui"].Manages)
	})
	t.Run("a unit that is managed means its direct members", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, []string{"owl"}, seats["scout"].Manages)
	})
	t.Run("parents stand before children", func(t *testing.T) {
		t.Parallel()
		require.Equal(t, []string{"", "operations", "operations"}, []string{
			units["operations"].ParentID, units["night"].ParentID, units["field"].ParentID,
		})
	})
}

// plan is a company drawn at random: the tree, and what each unit and seat declares.
type plan struct {
	name, channel string
	env           map[string]map[string]string
	seats         []plannedSeat
	children      []*plan
}

type plannedSeat struct {
	name  string
	human bool
	env   map[string]map[string]string
}

func drawEnv(t *rapid.T) map[string]map[string]string {
	variables := rapid.MapOf(rapid.SampledFrom([]string{"A", "B", "C"}), rapid.SampledFrom([]string{"x", "y", "${Z}"}))
	return rapid.MapOf(rapid.SampledFrom([]string{"one", "two"}), variables).Draw(t, "env")
}

func drawPlan(t *rapid.T, depth int, count *int) *plan {
	*count++
	p := &plan{name: fmt.Sprintf("unit %d", *count), env: drawEnv(t), channel: rapid.SampledFrom([]string{"", "c1", "c2"}).Draw(t, "channel")}
	for range rapid.IntRange(0, 3).Draw(t, "seats") {
		*count++
		s := plannedSeat{name: fmt.Sprintf("seat %d", *count), human: rapid.Bool().Draw(t, "human")}
		if !s.human {
			s.env = drawEnv(t)
		}
		p.seats = append(p.seats, s)
	}
	if depth > 0 {
		for range rapid.IntRange(0, 2).Draw(t, "children") {
			p.children = append(p.children, drawPlan(t, depth-1, count))
		}
	}
	return p
}

func (p *plan) write(b *strings.Builder, indent string) {
	fmt.Fprintf(b, "%s- name: %s\n%s  mcp_env: %s\n", indent, p.name, indent, writeEnv(p.env))
	if p.channel != "" {
		fmt.Fprintf(b, "%s  channel: %s\n", indent, p.channel)
	}
	if len(p.seats) > 0 {
		fmt.Fprintf(b, "%s  roles:\n", indent)
	}
	for i, s := range p.seats {
		if s.human {
			fmt.Fprintf(b, "%s    - {name: %s, kind: human, contact: {x: %s-%d}}\n", indent, s.name, s.name, i)
		} else {
			fmt.Fprintf(b, "%s    - {name: %s, mcp_env: %s}\n", indent, s.name, writeEnv(s.env))
		}
	}
	if len(p.children) > 0 {
		fmt.Fprintf(b, "%s  children:\n", indent)
	}
	for _, c := range p.children {
		c.write(b, indent+"    ")
	}
}

func writeEnv(env map[string]map[string]string) string {
	var servers []string
	for _, server := range slices.Sorted(maps.Keys(env)) {
		var vars []string
		for _, name := range slices.Sorted(maps.Keys(env[server])) {
			vars = append(vars, fmt.Sprintf("%s: '%s'", name, env[server][name]))
		}
		servers = append(servers, server+": {"+strings.Join(vars, ", ")+"}")
	}
	return "{" + strings.Join(servers, ", ") + "}"
}

// A seat's environment is exactly what itself and the unit it stands in declare, its own value first; a unit's channel is that
// of the nearest unit above that names one. Nothing else reaches it.
func TestInheritanceIsWhatTheTreeSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		count := 0
		root := drawPlan(t, 2, &count)
		var b strings.Builder
		b.WriteString("name: Co\nmcp_servers: [{name: one, shared: false, command: c}, {name: two, shared: false, command: c}]\nroles: [{name: Root}]\nunits:\n")
		root.write(&b, "  ")
		company, problems := document.Parse(b.String())
		require.Empty(t, problems, b.String())

		seats, units := map[string]document.Seat{}, map[string]document.Unit{}
		for _, s := range company.Seats {
			seats[s.Name] = s
		}
		for _, u := range company.Units {
			units[u.Name] = u
		}
		var check func(p *plan, channel string)
		check = func(p *plan, channel string) {
			if p.channel != "" {
				channel = p.channel
			}
			require.Equal(t, channel, units[p.name].Channel)
			for _, s := range p.seats {
				for _, server := range []string{"one", "two"} {
					for _, name := range []string{"A", "B", "C"} {
						want, ok := s.env[server][name]
						if !ok && !s.human {
							want, ok = p.env[server][name]
						}
						got, has := seats[s.name].Env[server][name]
						require.Equal(t, ok, has, "%s %s.%s", s.name, server, name)
						require.Equal(t, want, got)
					}
				}
			}
			for _, c := range p.children {
				check(c, channel)
			}
		}
		check(root, "")
	})
}

// Whoever is said to manage whom, what comes out has no circle, and nobody in a unit with a lead is left out unless they stand
// above that lead.
func TestManagingNeverGoesInACircle(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 8).Draw(t, "seats")
		var b strings.Builder
		fmt.Fprintf(&b, "name: Co\nunits:\n  - name: unit\n    lead: s%d\n    roles:\n", rapid.IntRange(0, n-1).Draw(t, "lead"))
		for i := range n {
			others := rapid.SliceOfDistinct(rapid.IntRange(0, n-1), rapid.ID[int]).Draw(t, "manages")
			var names []string
			for _, o := range others {
				names = append(names, fmt.Sprintf("s%d", o))
			}
			fmt.Fprintf(&b, "      - {name: s%d, manages: [%s]}\n", i, strings.Join(names, ", "))
		}
		company, problems := document.Parse(b.String())
		for _, p := range problems {
			require.Equal(t, document.KindCycle, p.Kind)
		}
		if company == nil {
			return
		}
		below := map[string][]string{}
		for _, s := range company.Seats {
			below[s.Handle] = s.Manages
		}
		for _, s := range company.Seats {
			require.False(t, reaches(below, s.Handle, s.Handle, map[string]bool{}), b.String())
		}
		lead := company.Units[0].Lead
		managed := map[string]bool{}
		for _, list := range below {
			for _, handle := range list {
				managed[handle] = true
			}
		}
		for _, s := range company.Seats {
			if s.Handle != lead && !managed[s.Handle] {
				require.True(t, reaches(below, s.Handle, lead, map[string]bool{}), "%s is managed by nobody:\n%s", s.Handle, b.String())
			}
		}
	})
}

func reaches(below map[string][]string, from, to string, seen map[string]bool) bool {
	for _, next := range below[from] {
		if next == to {
			return true
		}
		if !seen[next] {
			seen[next] = true
			if reaches(below, next, to, seen) {
				return true
			}
		}
	}
	return false
}
