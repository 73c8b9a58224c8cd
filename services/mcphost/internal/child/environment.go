package child

import (
	"maps"
	"slices"
)

// Environment answers a child's whole environment, sorted: what a program needs to find its runtime, its cache and its clock, and
// what is declared, which wins. Nothing else of this process's environment reaches a child: its settings and credentials are there.
func Environment(getenv func(string) string, declared map[string]string) []string {
	all := map[string]string{}
	for _, name := range []string{"PATH", "HOME", "LANG", "TMPDIR", "TZ", "USER"} {
		if value := getenv(name); value != "" {
			all[name] = value
		}
	}
	maps.Copy(all, declared)
	env := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		env = append(env, name+"="+all[name])
	}
	return env
}
