package api_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func (b *bundle) seal(name, value string) {
	b.t.Helper()
	_, err := b.company.PutSecret(operator(b.t), &companyv1.PutSecretRequest{Name: name, Value: value})
	require.NoError(b.t, err)
}

func resolve(b *bundle, service string, templates ...string) (*companyv1.ResolveSecretsResponse, error) {
	return b.connect(service).company.ResolveSecrets(b.t.Context(), &companyv1.ResolveSecretsRequest{Templates: templates})
}

func TestResolveSecrets(t *testing.T) {
	t.Parallel()

	t.Run("takes the sealed value before the environment's", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{env: map[string]string{"BOTH": "from the environment", "OUTSIDE": "outside"}})
		b.seal("BOTH", "sealed")
		out, err := resolve(b, "turn", "Bearer ${BOTH}", "plain", "${OUTSIDE}/${BOTH}")
		require.NoError(t, err)
		require.Equal(t, []string{"Bearer sealed", "plain", "outside/sealed"}, out.GetValues())
		require.Equal(t, []string{"sealed", "outside"}, out.GetSecrets())
	})

	t.Run("refuses unknown names, all of them at once", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{env: map[string]string{"EMPTY": ""}})
		_, err := resolve(b, "turn", "${NOPE}", "x${EMPTY}")
		f := refused(t, err, fault.NotFound)
		require.Equal(t, "SECRET_UNRESOLVED", f.Reason)
		require.Equal(t, "NOPE,EMPTY", f.Facts["names"])
		require.Contains(t, f.Message, "NOPE, EMPTY")
	})

	t.Run("never takes the suite's own names, or small letters, from the environment", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{env: map[string]string{"BULLPEN_PRINCIPAL_KEYS": "hunter2", "home": "hunter2"}})
		for _, name := range []string{"BULLPEN_PRINCIPAL_KEYS", "home"} {
			_, err := resolve(b, "turn", "${"+name+"}")
			require.NotContains(t, refused(t, err, fault.NotFound).Message, "hunter2")
		}
		b.seal("home", "sealed")
		out, err := resolve(b, "turn", "${home}")
		require.NoError(t, err)
		require.Equal(t, []string{"sealed"}, out.GetValues())
	})

	t.Run("answers mcphost, notification and turn, and nobody else", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		for _, service := range []string{"mcphost", "notification", "turn"} {
			_, err := resolve(b, service, "x")
			require.NoError(t, err)
		}
		for _, service := range []string{"tracker", "knowledge", "toolregistry", "company", "bullpen"} {
			_, err := resolve(b, service, "x")
			refused(t, err, fault.Forbidden)
		}
		// One service in the name of another is none of the three.
		ctx := rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindService, Id: "turn"})
		_, err := b.connect("tracker").company.ResolveSecrets(ctx, &companyv1.ResolveSecretsRequest{})
		refused(t, err, fault.Forbidden)
	})

	t.Run("refuses a broken template without repeating it", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		_, err := resolve(b, "turn", "ok", "hunter2 ${BAD-NAME}")
		f := refused(t, err, fault.Invalid)
		require.Equal(t, "templates[1]", f.Field)
		require.NotContains(t, f.Message, "hunter2")
	})

	t.Run("a value is not a template", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		b.seal("A", "${B}")
		b.seal("B", "hunter2")
		out, err := resolve(b, "turn", "${A}")
		require.NoError(t, err)
		require.Equal(t, []string{"${B}"}, out.GetValues())
	})
}

func TestSecrets(t *testing.T) {
	t.Parallel()

	t.Run("are replaced, listed by name and forgotten", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		b.seal("ZETA", "one")
		b.seal("ALPHA", "hunter2")
		b.seal("ALPHA", "hunter3")
		out, err := b.company.ListSecrets(operator(t), &companyv1.ListSecretsRequest{})
		require.NoError(t, err)
		require.Len(t, out.GetSecrets(), 2)
		require.Equal(t, "ALPHA", out.GetSecrets()[0].GetName())
		require.NotNil(t, out.GetSecrets()[0].GetUpdateTime())
		require.NotContains(t, out.String(), "hunter")
		got, err := resolve(b, "turn", "${ALPHA}")
		require.NoError(t, err)
		require.Equal(t, []string{"hunter3"}, got.GetValues())

		_, err = b.company.DeleteSecret(operator(t), &companyv1.DeleteSecretRequest{Name: "ALPHA"})
		require.NoError(t, err)
		_, err = resolve(b, "turn", "${ALPHA}")
		refused(t, err, fault.NotFound)
		_, err = b.company.DeleteSecret(operator(t), &companyv1.DeleteSecretRequest{Name: "ALPHA"})
		refused(t, err, fault.NotFound)
	})

	t.Run("stand nowhere in the database in clear, the ledger included", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		_, err := b.company.PutSecret(rpc.WithOperation(operator(t), "op-1"), &companyv1.PutSecretRequest{Name: "A", Value: "hunter2"})
		require.NoError(t, err)
		for _, table := range []string{"secrets", "operations", "outbox"} {
			var dump string
			require.NoError(t, b.pool.QueryRow(t.Context(),
				"select coalesce(string_agg(convert_from(decode(replace(encode(convert_to(x::text, 'UTF8'), 'hex'), '00', ''), 'hex'), 'UTF8'), ''), '') from "+table+" x").Scan(&dump))
			require.NotContains(t, dump, "hunter2")
		}
	})

	t.Run("one operation with another value is refused", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		ctx := rpc.WithOperation(operator(t), "op-1")
		_, err := b.company.PutSecret(ctx, &companyv1.PutSecretRequest{Name: "A", Value: "one"})
		require.NoError(t, err)
		_, err = b.company.PutSecret(ctx, &companyv1.PutSecretRequest{Name: "A", Value: "one"})
		require.NoError(t, err)
		_, err = b.company.PutSecret(ctx, &companyv1.PutSecretRequest{Name: "A", Value: "two"})
		require.Equal(t, "OPERATION_REUSED", refused(t, err, fault.Conflict).Reason)
	})

	t.Run("need the key to be put and read, and the refusal says which setting is missing", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		b.seal("A", "one")
		without := setup(t, options{pool: b.pool, noKey: true, env: map[string]string{"OUTSIDE": "x"}})
		_, err := without.company.PutSecret(operator(t), &companyv1.PutSecretRequest{Name: "B", Value: "x"})
		f := refused(t, err, fault.Unavailable)
		require.Equal(t, "NO_SEALING_KEY", f.Reason)
		require.Contains(t, f.Message, "-company.sealing-key")
		_, err = resolve(without, "turn", "${A}")
		require.Equal(t, "NO_SEALING_KEY", refused(t, err, fault.Unavailable).Reason)
		// What is not sealed needs no key.
		out, err := resolve(without, "turn", "${OUTSIDE}")
		require.NoError(t, err)
		require.Equal(t, []string{"x"}, out.GetValues())
		_, err = without.company.ListSecrets(operator(t), &companyv1.ListSecretsRequest{})
		require.NoError(t, err)
	})

	t.Run("say that another key sealed them, or that they were tampered with", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		b.seal("A", "one")
		b.seal("B", "two")
		other := setup(t, options{pool: b.pool, key: 'o'})
		_, err := resolve(other, "turn", "${A}")
		require.Equal(t, "OTHER_SEALING_KEY", refused(t, err, fault.Unavailable).Reason)
		_, err = b.pool.Exec(t.Context(), "update secrets set sealed = (select sealed from secrets where name = 'B') where name = 'A'")
		require.NoError(t, err)
		_, err = resolve(b, "turn", "${A}")
		require.Equal(t, "SECRET_DAMAGED", refused(t, err, fault.Unavailable).Reason)
	})

	t.Run("have names and sizes within bounds", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		for name, value := range map[string]string{"1A": "x", "A B": "x", "": "x", "A": "", "B": strings.Repeat("x", 65537)} {
			_, err := b.company.PutSecret(operator(t), &companyv1.PutSecretRequest{Name: name, Value: value})
			refused(t, err, fault.Invalid)
		}
	})
}
