package field_test

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/field"
)

func TestValuesAreCheckedAtEveryWriteAndReadBackAsTheyWereGiven(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	for _, c := range []struct {
		slug        string
		given, read any
	}{
		{"note", "a 👍 مرحبا\nb", "a 👍 مرحبا\nb"},
		{"story", strings.Repeat("x", field.MaxTextareaBytes), strings.Repeat("x", field.MaxTextareaBytes)},
		{"cost", 12.5, 12.5},
		{"cost", 1e9, 1e9},
		{"cost", 0.0, 0.0},
		{"count", -7.0, -7.0},
		{"day", "2026-02-28", "2026-02-28"},
		{"at", "2026-03-01T15:00:00+02:00", "2026-03-01T13:00:00Z"},
		{"severity", "high", "high"},
		{"severity", "Option HIGH", "high"},
		{"severity", []any{"low"}, "low"},
		{"areas", []any{"db", "ui", "db"}, []any{"db", "ui"}},
		{"areas", "ui", []any{"ui"}},
		{"marks", []any{"Option red"}, []any{"red"}},
		{"done", true, true},
		{"done", false, false},
		{"link", "https://example.com/a?b=c#d", "https://example.com/a?b=c#d"},
		{"link", "ftp://files.example.com/x", "ftp://files.example.com/x"},
		{"mail", "ana+work@example.com", "ana+work@example.com"},
		{"ready", 100.0, 100.0},
		{"ready", 33.5, 33.5},
		{"about", "OPS-1", "0193a3d0-5f1e-7c1c-9c55-0c6f2f3f6f10"},
		{"owner", "Ana", "ana"},
		{"owner", []any{"Ana"}, "ana"},
	} {
		read, err := put(t, s, c.slug, c.given)
		require.NoError(t, err, c.slug)
		require.Equal(t, c.read, read, c.slug)
	}
}

func TestAValueOfTheWrongKindIsRefusedAndNeverBentToFit(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	for _, c := range []struct {
		slug  string
		given any
		says  string
	}{
		{"note", 3.0, "must be a text"},
		{"note", strings.Repeat("x", field.MaxValueBytes+1), "4097 bytes"},
		{"story", strings.Repeat("x", field.MaxTextareaBytes+1), "16384"},
		{"cost", "12", "must be a number"},
		{"cost", 12.345, "2 decimal places"},
		{"cost", -0.01, "0 or more"},
		{"cost", 1e9 + 1, "1000000000 or less"},
		{"cost", 1e14, "cannot keep"},
		{"count", 1.5, "whole numbers"},
		{"count", 1e15, "cannot keep"},
		{"count", true, "must be a number"},
		{"count", math.NaN(), "must be a number"},
		{"count", math.Inf(1), "must be a number"},
		{"day", "2026-02-30", "a day such as"},
		{"day", "tomorrow", "a day such as"},
		{"day", "0000-01-01", "a day such as"},
		{"day", 3.0, "a day such as"},
		{"at", "2026-03-01", "a day alone does not say which"},
		{"at", "2026-03-01T15:00:00.5Z", "nothing is rounded"},
		{"at", "noon", "a time such as"},
		{"severity", "hihg", "did you mean high?"},
		{"severity", "medium", "there are low, high"},
		{"severity", []any{"low", "high"}, "takes one option"},
		{"severity", 2.0, "the slug of an option"},
		{"marks", []any{"red", 1.0}, "the slug of an option"},
		{"done", "true", "true or false"},
		{"done", 1.0, "true or false"},
		{"done", map[string]any{}, "not an object"},
		{"link", "/relative", "absolute URL"},
		{"link", "example.com", "absolute URL"},
		{"link", "javascript://x/%0aalert(1)", "script"},
		{"link", "https://a:secret@example.com", "without a password"},
		{"link", "mailto:ana@example.com", "absolute URL"},
		{"mail", "Ana <ana@example.com>", "email address alone"},
		{"mail", "ana", "email address alone"},
		{"mail", " ana@example.com", "email address alone"},
		{"mail", "ana@example.com, bob@example.com", "email address alone"},
		{"ready", 101.0, "100 or less"},
		{"ready", -1.0, "0 or more"},
		{"ready", 0.1234567, "6 decimal places"},
		{"about", "OPS-9", "there is no item"},
		{"about", 1.0, "key or id"},
		{"owner", "Bob", "nobody is"},
		{"owner", []any{"ana", "Bob"}, "exactly one colleague"},
	} {
		_, err := put(t, s, c.slug, c.given)
		require.Error(t, err, "%s = %v", c.slug, c.given)
		require.Contains(t, refused(t, err).Message, c.says)
	}
}

func TestATimeOnADayFieldIsCutToTheCompanysDayWithAWarning(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	res, err := s.Apply(nil, map[string]any{"day": "2026-03-08T04:30:00Z"}, resolver(t))
	require.NoError(t, err)
	require.Equal(t, map[string]any{"day": "2026-03-07"}, s.BySlug(res.Values), "it is still the 7th in New York")
	require.Len(t, res.Warnings, 1)
	require.Contains(t, res.Warnings[0], "2026-03-07")
}

func TestAProgressIsInsideItsOwnBoundsWhenItHasAny(t *testing.T) {
	t.Parallel()
	s := set(declare(t, field.Declaration{Slug: "p", Type: field.Progress, Min: ptr(1.0), Max: ptr(5.0), Progress: "manual"}))
	_, err := put(t, s, "p", 0.0)
	require.Contains(t, refused(t, err).Message, "1 or more")
	_, err = put(t, s, "p", 6.0)
	require.Contains(t, refused(t, err).Message, "5 or less")
	_, err = put(t, s, "p", 5.0)
	require.NoError(t, err)
}

func TestNoNumberIsEverRounded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		places := rapid.Int32Range(0, field.MaxPrecision).Draw(rt, "precision")
		s := set(declare(rt, field.Declaration{Slug: "n", Type: field.Number, Precision: &places}))
		digits := rapid.StringMatching(`-?(0|[1-9][0-9]{0,16})(\.[0-9]{1,8})?`).Draw(rt, "number")
		n, err := strconv.ParseFloat(digits, 64)
		require.NoError(rt, err)
		res, err := s.Apply(nil, map[string]any{"n": n}, resolver(rt))
		if err != nil {
			require.NotEmpty(rt, refused(rt, err).Message)
			return
		}
		read, ok := s.BySlug(stored(rt, res.Values))["n"].(float64)
		require.True(rt, ok)
		require.InDelta(rt, n, read, 0)
		// What was accepted is what was written, digit for digit, unless it was written with more digits than a number has.
		if whole, fraction, _ := strings.Cut(digits, "."); len(strings.TrimLeft(whole, "-0"))+len(fraction) <= 15 {
			require.Equal(rt, digits, fmt.Sprintf("%.*f", len(fraction), read))
		}
	})
}

func TestWhatIsAcceptedReadsBackEqualAndIsNoChangeAgain(t *testing.T) {
	t.Parallel()
	s := set(everything(t))
	value := func(rt *rapid.T, slug string) any {
		switch slug {
		case "note", "story":
			return rapid.StringN(1, 200, 800).Draw(rt, slug)
		case "cost":
			return float64(rapid.IntRange(0, 1e11).Draw(rt, slug)) / 100
		case "count":
			return float64(rapid.IntRange(-1e12, 1e12).Draw(rt, slug))
		case "day":
			return time.Unix(rapid.Int64Range(-2e9, 4e9).Draw(rt, slug), 0).UTC().Format(time.DateOnly)
		case "at":
			return time.Unix(rapid.Int64Range(-2e9, 4e9).Draw(rt, slug), 0).UTC().Format(time.RFC3339)
		case "severity":
			return rapid.SampledFrom([]string{"low", "high"}).Draw(rt, slug)
		case "areas":
			return anys(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"ui", "api", "db"}), 1, 3, rapid.ID).Draw(rt, slug))
		case "marks":
			return anys(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"red", "green", "blue"}), 1, 3, rapid.ID).Draw(rt, slug))
		case "done":
			return rapid.Bool().Draw(rt, slug)
		default:
			return float64(rapid.IntRange(0, 100).Draw(rt, slug))
		}
	}
	slugs := []string{"note", "story", "cost", "count", "day", "at", "severity", "areas", "marks", "done", "ready"}
	rapid.Check(t, func(rt *rapid.T) {
		given := map[string]any{}
		for _, slug := range rapid.SliceOfDistinct(rapid.SampledFrom(slugs), rapid.ID).Draw(rt, "slugs") {
			given[slug] = value(rt, slug)
		}
		res, err := s.Apply(nil, given, resolver(rt))
		require.NoError(rt, err)
		require.Empty(rt, res.Warnings)
		back := stored(rt, res.Values)
		if len(given) > 0 {
			require.Equal(rt, given, s.BySlug(back))
		}
		again, err := s.Apply(back, given, resolver(rt))
		require.NoError(rt, err)
		require.False(rt, again.Changed)
		require.Equal(rt, field.Described{}, again.Describe)
	})
}

func anys(texts []string) []any {
	out := make([]any, 0, len(texts))
	for _, text := range texts {
		out = append(out, text)
	}
	return out
}
