// Command depcheck holds the repository to the laws of rules.yaml: what may import what, which folder names and words
// are not used, and that all modules agree on the versions they share.
//
// It reads files and never builds anything, so it also judges a tree that does not compile.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
)

func main() {
	root := flag.String("root", ".", "the repository to check")
	rules := flag.String("rules", "tools/depcheck/rules.yaml", "the laws, relative to the working directory")
	flag.Parse()

	broken, err := run(context.Background(), *root, *rules)
	if err != nil {
		fmt.Fprintln(os.Stderr, "depcheck:", err)
		os.Exit(2)
	}
	if broken > 0 {
		fmt.Fprintf(os.Stderr, "depcheck: %d findings\n", broken)
		os.Exit(1)
	}
}

// run prints every finding under the law it breaks and returns how many there are.
func run(ctx context.Context, root, rulesFile string) (int, error) {
	text, err := os.ReadFile(rulesFile)
	if err != nil {
		return 0, err
	}
	laws, err := parseLaws(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", rulesFile, err)
	}
	files, err := committedFiles(ctx, root)
	if err != nil {
		return 0, err
	}
	findings, err := laws.check(tree{fsys: os.DirFS(root), files: files, module: laws.Module})
	if err != nil {
		return 0, err
	}
	rule := ""
	for _, f := range findings {
		if f.rule != rule {
			rule = f.rule
			fmt.Printf("\n%s\n  %s\n", f.rule, f.note)
		}
		fmt.Printf("  %s: %s\n", f.where, f.what)
	}
	return len(findings), nil
}
