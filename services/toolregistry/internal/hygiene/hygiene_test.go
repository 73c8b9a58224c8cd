package hygiene_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/hygiene"
)

// Secrets are put together here so that no scanner takes this file for a leak.
var (
	digits = strings.Repeat("a1B2c3D4", 6)
	pem    = "-----BEGIN RSA PRIVATE " + "KEY-----\nMIIB/password=x\n" + digits + "\n-----END RSA PRIVATE " + "KEY-----"
)

func TestSecretsAreKnownByTheirShape(t *testing.T) {
	t.Parallel()
	for name, c := range map[string][2]string{
		"an API key":              {"key sk-" + digits + " ok", "key [REDACTED:api_key] ok"},
		"a Slack bot token":       {"xoxb-" + "1234567890-abcdef", "[REDACTED:slack_token]"},
		"an AWS key":              {"id=AKIA" + "ABCDEFGHIJKLMNOP;", "id=[REDACTED:aws_key];"},
		"a GitHub token":          {"ghp_" + digits, "[REDACTED:github_token]"},
		"a fine-grained one":      {"github_pat_" + digits, "[REDACTED:github_token]"},
		"a GitLab token":          {"glpat-" + digits, "[REDACTED:gitlab_token]"},
		"a private key":           {"a " + pem + " b", "a [REDACTED:private_key] b"},
		"half a private key":      {"-----BEGIN PRIVATE " + "KEY-----\nMIIB", "[REDACTED:private_key]"},
		"a password":              {"dsn: user=bo password=hunter2 host=db", "dsn: user=bo password=[REDACTED:password] host=db"},
		"a JWT":                   {"Bearer eyJ" + digits + ".eyJ" + digits + "." + digits, "Bearer [REDACTED:jwt]"},
		"a Google key":            {"AIza" + digits[:35], "[REDACTED:google_key]"},
		"a Stripe key":            {"sk_live_" + digits, "[REDACTED:stripe_key]"},
		"credentials in a URL":    {"postgres://bo:hunter2@db/x", "postgres://bo:[REDACTED:url_credential]@db/x"},
		"a secret in a password":  {"password=sk-" + digits, "password=[REDACTED:password]"},
		"what mcphost took out":   {"key [REDACTED:secret], Bearer [REDACTED:secret]", "key [REDACTED:secret], Bearer [REDACTED:secret]"},
		"and what it stood for":   {"pwd=[REDACTED:secret] x", "pwd=[REDACTED:password] x"},
		"words that look alike":   {"task-management-for-everybody-here1, risk-free, https://a.b/c:d@e", "task-management-for-everybody-here1, risk-free, https://a.b/c:d@e"},
		"a key that is too short": {"sk-short ghp_abc AKIA123", "sk-short ghp_abc AKIA123"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := hygiene.New().Text(c[0])
			require.NoError(t, err)
			require.Equal(t, c[1], got)
		})
	}
}

func TestControlCharactersAreTakenOutAndBinaryIsRefused(t *testing.T) {
	t.Parallel()
	got, err := hygiene.New().Text("a\x1b[31mb\tc\r\nd\x7f\x08")
	require.NoError(t, err)
	require.Equal(t, "a[31mb\tc\r\nd", got)
	for _, binary := range []string{"a\x00b", "\xff\xfe"} {
		_, err := hygiene.New().Text(binary)
		require.ErrorIs(t, err, hygiene.ErrBinary)
	}
}

func TestJSONKeepsEverythingButWhatMustGo(t *testing.T) {
	t.Parallel()
	got, err := hygiene.New().JSON(`{ "id":9007199254740993, "z":1,"a" : "x\u001b[0m", "password":"hunter2", "nested":{"password": {"type":"string"}},
	"url":"https:\/\/bo:pw@host", "e":"\u00e9", "t":"ghp_` + digits + `"}`)
	require.NoError(t, err)
	require.Equal(t, `{ "id":9007199254740993, "z":1,"a" : "x[0m", "password":"[REDACTED:password]", "nested":{"password": {"type":"string"}},
	"url":"https://bo:[REDACTED:url_credential]@host", "e":"\u00e9", "t":"[REDACTED:github_token]"}`, got)
	_, err = hygiene.New().JSON(`{"a":"b\u0000"}`)
	require.ErrorIs(t, err, hygiene.ErrBinary)
	_, err = hygiene.New().JSON(`{"a":`)
	require.ErrorIs(t, err, hygiene.ErrNotJSON)
}

func FuzzText(f *testing.F) {
	for _, seed := range []string{"", "password=://u:a;b@h", pem, "sk-" + digits, "://u:password=x@h", "a\x00", "-----BEGIN PRIVATE " + "KEY-----", "pwd=pwd=pwd='"} {
		f.Add(seed)
	}
	cleaner := hygiene.New()
	f.Fuzz(func(t *testing.T, text string) {
		once, err := cleaner.Text(text)
		if err != nil {
			return
		}
		twice, err := cleaner.Text(once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}

func FuzzJSON(f *testing.F) {
	for _, seed := range []string{`{}`, `{"password":"x","a":["password","b"]}`, `"\u001b"`, `["\ud800","://a:b@c"]`, `{"a":{"password":[1,"x"]}}`, `{"password" : "a\u0007"}`} {
		f.Add(seed)
	}
	cleaner := hygiene.New()
	f.Fuzz(func(t *testing.T, document string) {
		once, err := cleaner.JSON(document)
		if err != nil {
			return
		}
		require.True(t, json.Valid([]byte(once)), "valid JSON stays valid")
		twice, err := cleaner.JSON(once)
		require.NoError(t, err)
		require.Equal(t, once, twice)
	})
}

func BenchmarkAMegabyteOfHarmlessText(b *testing.B) {
	document := `{"text":"` + strings.Repeat("The certificate of ops.example.com ends on Friday; see https://wiki/x. ", 15_000) + `"}`
	b.SetBytes(int64(len(document)))
	cleaner := hygiene.New()
	for b.Loop() {
		if _, err := cleaner.JSON(document); err != nil {
			b.Fatal(err)
		}
	}
}
