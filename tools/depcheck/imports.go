package main

import (
	"fmt"
	"slices"
	"strings"
)

func (l importLaw) check(files []goFile) []finding {
	graph := graphOf(files)
	var out []finding
	for _, file := range files {
		if file.test && !l.Tests {
			continue
		}
		bound, ok := matchAny(l.Packages, file.pkg, nil)
		if !ok {
			continue
		}
		if _, ok := matchAny(l.Except, file.pkg, nil); ok {
			continue
		}
		for _, imported := range file.imports {
			chain := l.banned(imported.name, bound, graph)
			if chain == nil {
				continue
			}
			out = append(out, finding{
				rule:  l.Rule,
				note:  l.Note,
				where: fmt.Sprintf("%s:%d", file.path, imported.line),
				what:  "imports " + strings.Join(chain, ", which imports "),
			})
		}
	}
	return out
}

// banned returns the shortest chain of imports from the named package to one that the law denies, nil when none does.
func (l importLaw) banned(name string, bound bindings, graph map[string][]string) []string {
	seen := map[string]bool{name: true}
	for queue := [][]string{{name}}; len(queue) > 0; queue = queue[1:] {
		chain := queue[0]
		last := chain[len(chain)-1]
		if l.denies(last, bound) {
			return chain
		}
		if !l.Through {
			return nil
		}
		for _, next := range graph[last] {
			if !seen[next] {
				seen[next] = true
				queue = append(queue, append(slices.Clone(chain), next))
			}
		}
	}
	return nil
}

func (l importLaw) denies(name string, bound bindings) bool {
	if _, ok := matchAny(l.Allow, name, bound); ok {
		return false
	}
	_, ok := matchAny(l.Deny, name, bound)
	return ok
}

// graphOf maps each package of ours to what its code, tests apart, imports.
func graphOf(files []goFile) map[string][]string {
	graph := map[string][]string{}
	for _, file := range files {
		if file.test {
			continue
		}
		for _, imported := range file.imports {
			graph[file.pkg] = append(graph[file.pkg], imported.name)
		}
	}
	for pkg, imports := range graph {
		slices.Sort(imports)
		graph[pkg] = slices.Compact(imports)
	}
	return graph
}
