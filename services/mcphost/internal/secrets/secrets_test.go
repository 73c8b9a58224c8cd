package secrets_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/secrets"
)

func TestValuesAreTakenOutHoweverTheyAreSpelt(t *testing.T) {
	t.Parallel()
	r := secrets.NewRedactor([]string{"pass\"word\n1", "tökén", "hunter2", "hunter2-longer", "12345678", "abc"})
	for in, out := range map[string]string{
		`{"a":"x hunter2 y","n":9007199254740993}`:        `{"a":"x [REDACTED:secret] y","n":9007199254740993}`,
		`{"a":"hunter2-longer"}`:                          `{"a":"[REDACTED:secret]"}`,
		`{"a":"pass\"word\n1"}`:                           `{"a":"[REDACTED:secret]"}`,
		`{"a":"t\u00f6k\u00e9n","b":"\u0068unter2"}`:      `{"a":"[REDACTED:secret]","b":"[REDACTED:secret]"}`,
		`{"hunter2":[1.50,"hunter2"]}`:                    `{"[REDACTED:secret]":[1.50,"[REDACTED:secret]"]}`,
		`{ "b" :1.50,"a":["hunter2" , true],"a":-0}`:      `{ "b" :1.50,"a":["[REDACTED:secret]" , true],"a":-0}`,
		`["\ud800 hunter2","\ud800",{}]`:                  `["� [REDACTED:secret]","\ud800",{}]`,
		`{"n":12345678}`:                                  `{"n":"[REDACTED:secret]"}`,
		`{ "a" : "<b>\u00e9\n",  "n":1e400, "abc":"abc"}`: `{ "a" : "<b>\u00e9\n",  "n":1e400, "abc":"abc"}`,
	} {
		require.Equal(t, out, string(r.JSON([]byte(in))))
	}
	require.Equal(t, "a [REDACTED:secret] b", r.Text("a hunter2 b"))
	var none *secrets.Redactor
	require.Equal(t, "hunter2", none.Text("hunter2"))
}

func TestWhateverStandsInADocumentTakesLittleMemory(t *testing.T) {
	r := secrets.NewRedactor([]string{"hunter2"})
	document := []byte(`["\u0041","hunter2"` + strings.Repeat(",[]", 100_000) + "]")
	require.Less(t, testing.AllocsPerRun(1, func() { r.JSON(document) }), 100.0)
}

func TestAMarkStaysWhateverTheValuesAre(t *testing.T) {
	t.Parallel()
	r := secrets.NewRedactor([]string{"hunter2", "secret", "REDACTED", "[REDACTED", "ED:secr"})
	once := r.Text("a hunter2 b secret")
	require.Equal(t, "a [REDACTED:secret] b [REDACTED:secret]", once)
	require.Equal(t, once, r.Text(once))
	require.JSONEq(t, `{"a":"[REDACTED:secret]"}`, string(r.JSON(r.JSON([]byte(`{"a":"hunter2"}`)))))
}

func TestAKeyOfSeveralLinesIsTakenOutLineByLine(t *testing.T) {
	t.Parallel()
	r := secrets.NewRedactor([]string{"-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nshort\n"})
	require.Equal(t, "line: [REDACTED:secret]", r.Text("line: MIIEvQIBADANBgkq"))
	require.Equal(t, "short", r.Text("short"))
}

func TestNoDocumentKeepsAValueAndEveryDocumentStaysOne(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		secret := rapid.StringN(4, 20, 80).Draw(t, "secret")
		r := secrets.NewRedactor([]string{secret})
		data, err := json.Marshal(map[string]any{"a": rapid.String().Draw(t, "before") + secret, "b": []any{secret, rapid.Float64().Draw(t, "n")}})
		require.NoError(t, err)
		var out map[string]any
		require.NoError(t, json.Unmarshal(r.JSON(data), &out))
		var utf8 string // what JSON makes of the secret
		text, err := json.Marshal(secret)
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(text, &utf8))
		require.NotContains(t, out["b"].([]any)[0], utf8)
	})
}

type vault struct{ requests int }

func (v *vault) ResolveSecrets(_ context.Context, r *companyv1.ResolveSecretsRequest) (*companyv1.ResolveSecretsResponse, error) {
	v.requests++
	if len(r.GetTemplates()) > 256 {
		return nil, fmt.Errorf("too many")
	}
	answer := &companyv1.ResolveSecretsResponse{Secrets: []string{"value"}}
	for _, text := range r.GetTemplates() {
		answer.Values = append(answer.Values, "filled "+text)
	}
	return answer, nil
}

func TestOnlyTemplatesAreAskedForAndAnyNumberOfThem(t *testing.T) {
	t.Parallel()
	v := &vault{}
	var f secrets.Filler
	m := map[string]string{"plain": "x$y"}
	for i := range 300 {
		m[fmt.Sprint(i)] = "${A}"
	}
	f.AddMap(m)
	_, err := f.Fill(t.Context(), v)
	require.NoError(t, err)
	require.Equal(t, 2, v.requests)
	require.Equal(t, "x$y", m["plain"])
	require.Equal(t, "filled ${A}", m["299"])
}

func TestValuesThatComeUpLaterAreTakenOutBesideTheFirst(t *testing.T) {
	t.Parallel()
	first := secrets.NewRedactor([]string{"declared-1"})
	both := first.With("token-2")
	require.Equal(t, "[REDACTED:secret] token-2", first.Text("declared-1 token-2"))
	require.Equal(t, "[REDACTED:secret] [REDACTED:secret]", both.Text("declared-1 token-2"))
	var none *secrets.Redactor
	require.Equal(t, "[REDACTED:secret]", none.With("token-2").Text("token-2"))
}
