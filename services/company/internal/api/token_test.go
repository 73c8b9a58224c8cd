package api_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func (b *bundle) token(req *companyv1.CreateTokenRequest) *companyv1.CreateTokenResponse {
	b.t.Helper()
	out, err := b.company.CreateToken(operator(b.t), req)
	require.NoError(b.t, err)
	return out
}

func verify(b *bundle, token string) (*rpc.Principal, error) {
	out, err := b.connect("notification").principals.VerifyToken(b.t.Context(), &toolv1.VerifyTokenRequest{Token: token})
	return out.GetPrincipal(), err
}

func TestTokens(t *testing.T) {
	t.Parallel()

	t.Run("a machine's token is an operator", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		made := b.token(&companyv1.CreateTokenRequest{Name: "ci"})
		require.True(t, strings.HasPrefix(made.GetToken(), "bp_"))
		require.True(t, strings.HasPrefix(made.GetToken(), made.GetDetails().GetHint()))
		require.Nil(t, made.GetDetails().GetExpireTime())
		p, err := verify(b, made.GetToken())
		require.NoError(t, err)
		require.Equal(t, rpc.KindOperator, p.GetKind())
		require.Equal(t, made.GetDetails().GetTokenId(), p.GetId())
		require.Equal(t, "ci", p.GetDisplayName())
		require.Empty(t, p.GetSeat())
		require.Equal(t, b.clock.Now().Add(time.Minute).Unix(), p.GetExpireTime().AsTime().Unix())
	})

	t.Run("a token of a human seat is that person", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		b.put(lantern, "")
		made := b.token(&companyv1.CreateTokenRequest{Name: "laptop", Seat: "ines-rocha"})
		p, err := verify(b, made.GetToken())
		require.NoError(t, err)
		require.Equal(t, []string{rpc.KindPerson, "ines-rocha", "ines-rocha", "Ines Rocha", made.GetDetails().GetTokenId()},
			[]string{p.GetKind(), p.GetId(), p.GetSeat(), p.GetDisplayName(), p.GetTokenId()}, "and says which of her tokens it is")
	})

	t.Run("is bound to a person's seat that exists, or to none", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		_, err := b.company.CreateToken(operator(t), &companyv1.CreateTokenRequest{Name: "x", Seat: "ines-rocha"})
		require.Equal(t, "NO_ACTIVE_REVISION", refused(t, err, fault.NotFound).Reason)
		b.put(lantern, "")
		for _, seat := range []string{"nobody", "Ines Rocha", "ops-lead"} {
			_, err := b.company.CreateToken(operator(t), &companyv1.CreateTokenRequest{Name: "x", Seat: seat})
			require.Equal(t, "seat", refused(t, err, fault.Invalid).Field)
		}
	})

	t.Run("ends with the seat it was bound to", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		r := b.put(lantern, "")
		made := b.token(&companyv1.CreateTokenRequest{Name: "laptop", Seat: "ines-rocha"})
		b.put("name: Co\nroles: [{name: Ada}]\n", r.GetRevisionId())
		_, err := verify(b, made.GetToken())
		require.Equal(t, "TOKEN_NOT_LIVE", refused(t, err, fault.Forbidden).Reason)
	})

	t.Run("ends after its days, and answers until then are no longer believed", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		made := b.token(&companyv1.CreateTokenRequest{Name: "ci", Days: 1})
		b.clock.forward(24*time.Hour - 10*time.Second)
		p, err := verify(b, made.GetToken())
		require.NoError(t, err)
		require.Equal(t, made.GetDetails().GetExpireTime().AsTime().Unix(), p.GetExpireTime().AsTime().Unix())
		b.clock.forward(10 * time.Second)
		_, err = verify(b, made.GetToken())
		refused(t, err, fault.Forbidden)
	})

	t.Run("is revoked at once, twice without complaint", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		made := b.token(&companyv1.CreateTokenRequest{Name: "ci"})
		revoke := &companyv1.RevokeTokenRequest{TokenId: made.GetDetails().GetTokenId()}
		for range 2 {
			_, err := b.company.RevokeToken(operator(t), revoke)
			require.NoError(t, err)
		}
		_, err := verify(b, made.GetToken())
		refused(t, err, fault.Forbidden)
		list, err := b.company.ListTokens(operator(t), &companyv1.ListTokensRequest{})
		require.NoError(t, err)
		require.NotNil(t, list.GetTokens()[0].GetRevokeTime())
		_, err = b.company.RevokeToken(operator(t), &companyv1.RevokeTokenRequest{TokenId: uuid.NewString()})
		refused(t, err, fault.NotFound)
	})

	t.Run("what is no token, another's or a changed one is refused alike", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		made := b.token(&companyv1.CreateTokenRequest{Name: "ci"}).GetToken()
		changed := made[:10] + strings.ToUpper(made[10:20]) + strings.ToLower(made[20:])
		messages := map[string]bool{}
		for _, text := range []string{"x", "bp_", strings.ToUpper(made), changed, made + "A", made[:45], "bp_" + strings.Repeat("A", 43)} {
			_, err := verify(b, text)
			messages[refused(t, err, fault.Forbidden).Message] = true
		}
		require.Len(t, messages, 1)
	})

	t.Run("its text is in the answer and nowhere else", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		ctx := rpc.WithOperation(operator(t), "op-1")
		req := &companyv1.CreateTokenRequest{Name: "ci"}
		made, err := b.company.CreateToken(ctx, req)
		require.NoError(t, err)
		secret := made.GetToken()[len("bp_")+6:]
		list, err := b.company.ListTokens(operator(t), &companyv1.ListTokensRequest{})
		require.NoError(t, err)
		require.NotContains(t, list.String(), secret)
		var kept []byte
		require.NoError(t, b.pool.QueryRow(t.Context(), "select result from operations").Scan(&kept))
		require.NotContains(t, string(kept), secret)

		_, err = b.company.CreateToken(ctx, req)
		f := refused(t, err, fault.Exists)
		require.Equal(t, "TOKEN_ALREADY_SHOWN", f.Reason)
		require.Equal(t, made.GetDetails().GetTokenId(), f.Facts["token_id"])
	})

	t.Run("are listed newest first", func(t *testing.T) {
		t.Parallel()
		b := setup(t, options{})
		for _, name := range []string{"one", "two", "three"} {
			b.token(&companyv1.CreateTokenRequest{Name: name})
		}
		list, err := b.company.ListTokens(operator(t), &companyv1.ListTokensRequest{})
		require.NoError(t, err)
		require.Equal(t, "three", list.GetTokens()[0].GetName())
		require.Equal(t, "one", list.GetTokens()[2].GetName())
	})
}
