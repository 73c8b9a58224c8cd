package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
)

// finding is one place where a law is broken.
type finding struct {
	rule, note  string
	where, what string
}

// check returns the findings of all laws, law by law in the order of rules.yaml.
func (l *laws) check(t tree) ([]finding, error) {
	files, err := t.goFiles()
	if err != nil {
		return nil, err
	}
	var out []finding
	for _, one := range l.Imports {
		out = append(out, one.check(files)...)
	}
	for _, one := range l.Folders {
		out = append(out, one.check(t)...)
	}
	for _, one := range l.Words {
		found, err := one.check(t)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	for _, one := range l.Modules {
		found, err := one.check(t)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

func (l folderLaw) check(t tree) []finding {
	var out []finding
	seen := map[string]bool{}
	for _, name := range t.files {
		folder := path.Dir(name)
		if _, ok := matchAny(l.Except, name, nil); ok || seen[folder] {
			continue
		}
		seen[folder] = true
		for _, segment := range strings.Split(folder, "/") {
			if slices.Contains(l.Deny, segment) {
				out = append(out, finding{l.Rule, l.Note, folder, fmt.Sprintf("is under a folder named %q", segment)})
			}
		}
	}
	return out
}

func (l wordLaw) check(t tree) ([]finding, error) {
	var out []finding
	for _, name := range t.files {
		if _, ok := matchAny(l.Files, name, nil); !ok {
			continue
		}
		if _, ok := matchAny(l.Except, name, nil); ok {
			continue
		}
		text, err := fs.ReadFile(t.fsys, name)
		if err != nil {
			return nil, err
		}
		if bytes.IndexByte(text, 0) >= 0 {
			continue // not text
		}
		for i, line := range strings.Split(string(text), "\n") {
			for _, expr := range l.deny {
				if word := expr.FindString(line); word != "" {
					out = append(out, finding{l.Rule, l.Note, fmt.Sprintf("%s:%d", name, i+1), fmt.Sprintf("says %q", word)})
				}
			}
		}
	}
	return out, nil
}

// required is a version of a dependency and the go.mod that asks for it.
type required struct{ version, file string }

func (l moduleLaw) check(t tree) ([]finding, error) {
	first := map[string]required{}
	var out []finding
	compare := func(file, dependency, version string) {
		was, ok := first[dependency]
		if !ok {
			first[dependency] = required{version, file}
			return
		}
		if was.version != version {
			what := fmt.Sprintf("wants %s %s, but %s wants %s", dependency, version, was.file, was.version)
			out = append(out, finding{l.Rule, l.Note, file, what})
		}
	}
	for _, name := range t.files {
		if _, ok := matchAny(l.Files, name, nil); !ok {
			continue
		}
		text, err := fs.ReadFile(t.fsys, name)
		if err != nil {
			return nil, err
		}
		mod, err := modfile.Parse(name, text, nil)
		if err != nil {
			return nil, err
		}
		if mod.Go != nil {
			compare(name, "go", mod.Go.Version)
		}
		for _, r := range mod.Require {
			compare(name, r.Mod.Path, r.Mod.Version)
		}
	}
	return out, nil
}
