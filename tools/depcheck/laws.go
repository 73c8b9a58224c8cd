package main

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/goccy/go-yaml"
)

// laws is rules.yaml. Every law has a name, which is the sentence it enforces, and a note that says why.
type laws struct {
	// Module is the prefix that all Go modules of the repository share.
	Module  string      `yaml:"module"`
	Imports []importLaw `yaml:"imports"`
	Folders []folderLaw `yaml:"folders"`
	Words   []wordLaw   `yaml:"words"`
	Modules []moduleLaw `yaml:"modules"`
}

// Law is the sentence it enforces and why. Exported because the YAML decoder sets embedded fields only then.
type Law struct {
	Rule string `yaml:"rule"`
	Note string `yaml:"note"`
}

// importLaw bans imports. Packages of this repository are named by their folder, others by their import path.
type importLaw struct {
	Law `yaml:",inline"`
	// Packages are the importers it binds, Except those it does not.
	Packages []string `yaml:"packages"`
	Except   []string `yaml:"except"`
	// Deny are the imports it bans, Allow those it permits all the same. Both may use names bound by Packages.
	Deny  []string `yaml:"deny"`
	Allow []string `yaml:"allow"`
	// Tests says that _test.go files are bound too.
	Tests bool `yaml:"tests"`
	// Through says that what the imported packages of this repository import in turn counts as well.
	Through bool `yaml:"through"`
}

// folderLaw bans names of folders.
type folderLaw struct {
	Law    `yaml:",inline"`
	Except []string `yaml:"except"`
	Deny   []string `yaml:"deny"`
}

// wordLaw bans text, as regular expressions matched line by line.
type wordLaw struct {
	Law    `yaml:",inline"`
	Files  []string `yaml:"files"`
	Except []string `yaml:"except"`
	Deny   []string `yaml:"deny"`

	deny []*regexp.Regexp
}

// moduleLaw demands one version of each shared dependency, and of Go, over a set of go.mod files.
type moduleLaw struct {
	Law   `yaml:",inline"`
	Files []string `yaml:"files"`
}

// parseLaws refuses keys it does not know, laws without a name or a note, and expressions that do not compile.
func parseLaws(text []byte) (*laws, error) {
	var l laws
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&l); err != nil {
		return nil, err
	}
	if l.Module == "" {
		return nil, errors.New("module is empty")
	}
	for _, named := range l.all() {
		if named.Rule == "" || named.Note == "" {
			return nil, fmt.Errorf("law %q: both rule and note must be given", named.Rule)
		}
	}
	for i := range l.Words {
		for _, expr := range l.Words[i].Deny {
			re, err := regexp.Compile(expr)
			if err != nil {
				return nil, fmt.Errorf("law %q: %w", l.Words[i].Rule, err)
			}
			l.Words[i].deny = append(l.Words[i].deny, re)
		}
	}
	return &l, nil
}

func (l *laws) all() []Law {
	var out []Law
	for _, one := range l.Imports {
		out = append(out, one.Law)
	}
	for _, one := range l.Folders {
		out = append(out, one.Law)
	}
	for _, one := range l.Words {
		out = append(out, one.Law)
	}
	for _, one := range l.Modules {
		out = append(out, one.Law)
	}
	return out
}
