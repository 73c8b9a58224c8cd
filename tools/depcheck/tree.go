package main

import (
	"context"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// tree is the repository as the laws see it: committed files only.
type tree struct {
	fsys   fs.FS
	files  []string // slash-separated, relative to the root
	module string
}

// committedFiles lists what git tracks or would track, so that build output and ignored files are not judged.
func committedFiles(ctx context.Context, root string) ([]string, error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("git ls-files in %s: %w", root, err)
	}
	files := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	slices.Sort(files)
	return slices.DeleteFunc(slices.Compact(files), func(name string) bool {
		// A tracked file may be deleted but not yet committed as such.
		info, err := os.Lstat(filepath.Join(root, name))
		return err != nil || !info.Mode().IsRegular()
	}), nil
}

// goFile is one Go source file and what it imports.
type goFile struct {
	path    string
	pkg     string // its folder, which is how the laws name a package of ours
	test    bool
	imports []goImport
}

type goImport struct {
	name string // the folder of a package of ours, the import path of any other
	line int
}

// goFiles parses the import clauses of every Go file that belongs to a build.
func (t tree) goFiles() ([]goFile, error) {
	var out []goFile
	for _, name := range t.files {
		if path.Ext(name) != ".go" || slices.Contains(strings.Split(name, "/"), "testdata") {
			continue
		}
		file, err := t.parse(name)
		if err != nil {
			return nil, err
		}
		out = append(out, file)
	}
	return out, nil
}

func (t tree) parse(name string) (goFile, error) {
	text, err := fs.ReadFile(t.fsys, name)
	if err != nil {
		return goFile{}, err
	}
	positions := token.NewFileSet()
	parsed, err := parser.ParseFile(positions, name, text, parser.ImportsOnly)
	if err != nil {
		return goFile{}, err
	}
	file := goFile{path: name, pkg: path.Dir(name), test: strings.HasSuffix(name, "_test.go")}
	for _, spec := range parsed.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return goFile{}, err
		}
		file.imports = append(file.imports, goImport{
			name: strings.TrimPrefix(imported, t.module+"/"),
			line: positions.Position(spec.Pos()).Line,
		})
	}
	return file, nil
}
