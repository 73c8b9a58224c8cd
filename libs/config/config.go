// Package config reads a program's settings from flags and from their environment twins.
//
// Every flag has exactly one twin, derived from its name and never typed: `-tracker.database-url` is
// BULLPEN_TRACKER_DATABASE_URL. A flag given on the command line wins over its twin, a twin over the default. There is no
// configuration file: the flag set is the whole surface, [Markdown] prints it, and a golden test keeps the printed page true.
//
// Secrets are a type of their own, [Secret], which does not print. A secret may also be read from a file whose name is in the
// twin with _FILE appended, which is how container secrets arrive.
package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
)

// envPrefix keeps our variables apart from everybody else's.
const envPrefix = "BULLPEN_"

// EnvName answers the environment twin of a flag: EnvName("tracker.database-url") is BULLPEN_TRACKER_DATABASE_URL.
func EnvName(flagName string) string {
	return envPrefix + strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(flagName))
}

// Invalid is the error for a setting whose value cannot be used. It names the flag and its twin, so that whoever set either
// finds it; the format, which is Errorf's, goes on from there and should give the limit: `must be at most 500, not 900`.
func Invalid(flagName, format string, args ...any) error {
	return fmt.Errorf("-%s (%s) "+format, append([]any{flagName, EnvName(flagName)}, args...)...)
}

// Parse sets the flags of fs from args, and those that args leaves out from their environment twins; an empty variable counts
// as absent. It reports every bad variable at once, each with both names. It answers [flag.ErrHelp] for -h and -help, and
// prints nothing itself.
func Parse(fs *flag.FlagSet, args []string, getenv func(string) string) error {
	if err := checkNames(fs); err != nil {
		return err
	}
	fs.SetOutput(io.Discard)
	fs.Usage = func() {}
	unwrap := nameTwins(fs)
	err := fs.Parse(args)
	unwrap()
	if err != nil {
		return err
	}
	if fs.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q: settings are given as -name=value", fs.Arg(0))
	}
	given := map[string]bool{}
	fs.Visit(func(f *flag.Flag) { given[f.Name] = true })
	var errs []error
	fs.VisitAll(func(f *flag.Flag) {
		if !given[f.Name] {
			errs = append(errs, fromEnv(fs, f, getenv))
		}
	})
	return errors.Join(errs...)
}

func fromEnv(fs *flag.FlagSet, f *flag.Flag, getenv func(string) string) error {
	value := getenv(EnvName(f.Name))
	_, secret := f.Value.(*secretValue)
	if secret {
		var err error
		if value, err = secretFromEnv(f.Name, value, getenv); err != nil {
			return err
		}
	}
	if value == "" {
		return nil
	}
	if err := fs.Set(f.Name, value); err != nil {
		return fmt.Errorf("%s (twin of -%s) cannot be read: %q: %w", EnvName(f.Name), f.Name, value, err)
	}
	return nil
}

// checkNames refuses a set in which two flags share a twin, or a name was put together wrongly.
func checkNames(fs *flag.FlagSet) error {
	byTwin := map[string]string{}
	var errs []error
	fs.VisitAll(func(f *flag.Flag) {
		if strings.Contains(f.Name, "..") || strings.HasPrefix(f.Name, ".") || strings.HasSuffix(f.Name, ".") {
			errs = append(errs, fmt.Errorf("flag -%s has an empty part in its name", f.Name))
		}
		twin := EnvName(f.Name)
		if other, taken := byTwin[twin]; taken {
			errs = append(errs, fmt.Errorf("flags -%s and -%s have the same twin %s", other, f.Name, twin))
		}
		byTwin[twin] = f.Name
	})
	return errors.Join(errs...)
}

// nameTwins makes errors of [flag.FlagSet.Parse] name the environment twin beside the flag, until the returned function is
// called.
func nameTwins(fs *flag.FlagSet) (restore func()) {
	plain := map[string]flag.Value{}
	fs.VisitAll(func(f *flag.Flag) {
		plain[f.Name] = f.Value
		f.Value = twinNamed{Value: f.Value, twin: EnvName(f.Name)}
	})
	return func() {
		fs.VisitAll(func(f *flag.Flag) { f.Value = plain[f.Name] })
	}
}

type twinNamed struct {
	flag.Value
	twin string
}

func (t twinNamed) Set(s string) error {
	if err := t.Value.Set(s); err != nil {
		return fmt.Errorf("%w (its environment twin is %s)", err, t.twin)
	}
	return nil
}

func (t twinNamed) IsBoolFlag() bool {
	b, ok := t.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// ListVar defines a flag that holds a list, written with commas. Blanks round an entry and empty entries are dropped; giving
// the flag again replaces the list. The value p points at is the default.
func ListVar(fs *flag.FlagSet, p *[]string, name, usage string) {
	fs.Var((*listValue)(p), name, usage)
}

type listValue []string

func (l *listValue) String() string { return strings.Join(*l, ",") }

func (l *listValue) Set(s string) error {
	*l = nil
	for part := range strings.SplitSeq(s, ",") {
		if part = strings.TrimSpace(part); part != "" {
			*l = append(*l, part)
		}
	}
	return nil
}
