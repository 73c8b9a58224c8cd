package config

import (
	"flag"
	"fmt"
	"strings"
)

// Markdown answers a table of all flags of fs, sorted by name: flag, environment twin, default and what it does. It is the
// source of the configuration page.
func Markdown(fs *flag.FlagSet) string {
	var b strings.Builder
	b.WriteString("| Flag | Environment | Default | What it does |\n| --- | --- | --- | --- |\n")
	fs.VisitAll(func(f *flag.Flag) {
		twin := "`" + EnvName(f.Name) + "`"
		if _, secret := f.Value.(*secretValue); secret {
			twin += " or `" + EnvName(f.Name) + "_FILE`"
		}
		fallback := ""
		if f.DefValue != "" {
			fallback = "`" + f.DefValue + "`"
		}
		fmt.Fprintf(&b, "| `-%s` | %s | %s | %s |\n", f.Name, twin, cell(fallback), cell(f.Usage))
	})
	return b.String()
}

// Usage answers the same for a terminal.
func Usage(fs *flag.FlagSet) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s takes these settings, as flags or as environment variables:\n", fs.Name())
	fs.VisitAll(func(f *flag.Flag) {
		fmt.Fprintf(&b, "\n  -%s (%s)", f.Name, EnvName(f.Name))
		if f.DefValue != "" {
			fmt.Fprintf(&b, " = %s", f.DefValue)
		}
		fmt.Fprintf(&b, "\n      %s\n", f.Usage)
	})
	return b.String()
}

// cell keeps a text inside its table cell.
func cell(s string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ").Replace(s)
}
