package surface

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	// maxNameBytes is the longest name that a call can carry.
	maxNameBytes = 256
	// maxWireBytes is the longest name that every model provider takes.
	maxWireBytes = 64
	// shownBytes is how much of a name that is too long is shown.
	shownBytes = 60
)

var wireName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// WireName answers the name that every model provider takes for a canonical one. A name that fits stays as it is; of another one
// what fits is kept, with a digest of the whole behind it. So it depends on the name alone: it is the same in every process, for
// every seat and whatever other servers there are.
func WireName(name string) string {
	if wireName.MatchString(name) {
		return name
	}
	suffix := "_" + shortDigest(name)
	fitting := []byte(name)
	for i, c := range fitting {
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
		if !letter {
			fitting[i] = '_'
		}
	}
	return string(fitting[:min(len(fitting), maxWireBytes-len(suffix))]) + suffix
}

func shortDigest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:5])
}

// nameFault answers why no call can carry a name, and the form in which it is shown instead; empty for a name that will do.
func nameFault(name string) (fault, instead string) {
	switch {
	case len(name) > maxNameBytes:
		return fmt.Sprintf("its name has %d bytes; a call carries at most %d", len(name), maxNameBytes), short(shown(name))
	case !printable(name):
		return "its name has characters that cannot be written in a call", short(shown(name))
	}
	return "", ""
}

// short shows the beginning of a name that is too long to be shown, and which one it is.
func short(name string) string {
	if len(name) <= maxNameBytes {
		return name
	}
	end := shownBytes
	for end > 0 && !utf8.RuneStart(name[end]) {
		end--
	}
	return name[:end] + "…#" + shortDigest(name)
}

func printable(name string) bool {
	for _, r := range name {
		if r <= ' ' || r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// shown answers a form of a name that terminals and readers see as it is.
func shown(name string) string {
	if strings.IndexFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) < 0 {
		return name
	}
	return strconv.QuoteToASCII(name)
}
