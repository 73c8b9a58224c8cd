package config

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
)

// maxSecretFile is more than any key or DSN needs and little enough to read whole.
const maxSecretFile = 64 << 10

const hidden = "***"

// Secret is a string that does not print: every fmt verb, JSON, text encoding and slog show `***` instead, and an empty one
// shows nothing. Only Reveal gives the value, so that each place which uses one can be found.
type Secret string

// Reveal answers the value.
func (s Secret) Reveal() string { return string(s) }

// String answers `***`, or nothing for an empty secret.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return hidden
}

// Format hides the value from every verb, %x and %#v included.
func (s Secret) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, s.String())
}

// MarshalText hides the value from encoders of text. A key of a JSON map is the one thing that no method is asked for: do not
// key maps by secrets.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// MarshalJSON hides the value from encoding/json.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + s.String() + `"`), nil }

// LogValue hides the value from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// SecretVar defines a flag that holds a secret; the value p points at is the default and is not shown. Beside its twin NAME
// the flag reads NAME_FILE, the name of a file that holds the value.
func SecretVar(fs *flag.FlagSet, p *Secret, name, usage string) {
	fs.Var((*secretValue)(p), name, usage)
}

type secretValue Secret

func (s *secretValue) String() string {
	if s == nil {
		return ""
	}
	return Secret(*s).String()
}

func (s *secretValue) Set(v string) error {
	*s = secretValue(v)
	return nil
}

// secretFromEnv answers value, or what the file named by NAME_FILE holds without its last line end.
func secretFromEnv(flagName, value string, getenv func(string) string) (string, error) {
	twin := EnvName(flagName) + "_FILE"
	path := getenv(twin)
	if path == "" {
		return value, nil
	}
	if value != "" {
		return "", fmt.Errorf("%s and %s (twins of -%s) are both set: keep one", EnvName(flagName), twin, flagName)
	}
	content, err := readSecret(path)
	if err != nil {
		return "", fmt.Errorf("%s (twin of -%s) cannot be read: %w", twin, flagName, err)
	}
	return content, nil
}

func readSecret(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	content, err := io.ReadAll(io.LimitReader(file, maxSecretFile+1))
	if err != nil {
		return "", err
	}
	if len(content) > maxSecretFile {
		return "", fmt.Errorf("%s holds more than the %d bytes a secret may have", path, maxSecretFile)
	}
	value := strings.TrimRight(string(content), "\r\n")
	if value == "" {
		return "", errors.New(path + " is empty")
	}
	return value, nil
}
