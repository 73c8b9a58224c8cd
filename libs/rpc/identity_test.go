package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func TestCallArrivesInTheNameOfItsCaller(t *testing.T) {
	t.Parallel()
	onBothTransports(t, rpc.ServerOptions{}, serving(whoami), func(t *testing.T, b *bundle) {
		res, err := b.ask(t.Context())
		require.NoError(t, err)
		require.Equal(t, rpc.KindService, res.GetPrincipal().GetKind())
		require.Equal(t, "turn", res.GetPrincipal().GetId())

		seat := &rpc.Principal{Kind: rpc.KindSeat, Id: "ada", Seat: "ada", Issuer: "somebody else"}
		res, err = b.ask(rpc.As(t.Context(), seat))
		require.NoError(t, err)
		require.Equal(t, "ada", res.GetPrincipal().GetId())
		require.Equal(t, "turn", res.GetPrincipal().GetIssuer(), "the issuer is who signs, whatever the claims say")

		_, err = b.ask(rpc.As(t.Context(), nil))
		require.Equal(t, fault.Forbidden, rpc.FromError(err).Class, "nobody is not the service")
	})
}

func TestHandlerSeesNothingOfItsCallersContext(t *testing.T) {
	t.Parallel()
	type key struct{}
	var seen atomic.Value
	spy := func(ctx context.Context, req *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		seen.Store(fmt.Sprint(ctx.Value(key{})))
		return whoami(ctx, req)
	}
	onBothTransports(t, rpc.ServerOptions{}, serving(spy), func(t *testing.T, b *bundle) {
		_, err := b.ask(context.WithValue(t.Context(), key{}, "the caller's transaction"))
		require.NoError(t, err)
		require.Equal(t, "<nil>", seen.Load())
	})
}

func TestHandlerCallsOnAsItsOwnService(t *testing.T) {
	t.Parallel()
	back := newBundle(t, rpc.ServerOptions{}, serving(whoami))
	back.dial = func() connect.Transport { return rpc.InProcess(back.server) }
	onward := func(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		if rpc.OperationID(ctx) != "op-1" {
			return nil, fault.New(fault.Invalid, "the operation did not arrive")
		}
		return back.ask(ctx)
	}
	onBothTransports(t, rpc.ServerOptions{}, serving(onward), func(t *testing.T, b *bundle) {
		ctx := rpc.WithOperation(rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindSeat, Id: "ada"}), "op-1")
		res, err := b.ask(ctx)
		require.NoError(t, err)
		require.Equal(t, rpc.KindService, res.GetPrincipal().GetKind(), "a caller's principal is not passed on by itself")
	})
}

func TestUnbelievableCallersAreRefused(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	signed := func(key string, at time.Time, ttl time.Duration) string {
		keys, err := rpc.NewKeys(keyA)
		if key == "B" {
			keys, err = rpc.NewKeys(keyB)
		}
		require.NoError(t, err)
		return keys.At(func() time.Time { return at }).Sign(&rpc.Principal{Kind: rpc.KindSeat, Id: "ada"}, ttl)
	}
	claimed := func(p *rpc.Principal) string {
		keys, err := rpc.NewKeys(keyA)
		require.NoError(t, err)
		return keys.At(func() time.Time { return now }).Sign(p, time.Minute)
	}
	good := signed("A", now, time.Minute)
	for name, c := range map[string]struct {
		headers map[string]string
		says    string
	}{
		"nobody":              {nil, "says nothing of who makes it"},
		"not a token":         {map[string]string{"Bullpen-Principal": "ada"}, "not in the form"},
		"another service key": {map[string]string{"Bullpen-Principal": signed("B", now, time.Minute)}, "signature is not one of ours"},
		"changed claims":      {map[string]string{"Bullpen-Principal": "p1.AAAA" + good[len("p1.AAAA"):]}, "signature is not one of ours"},
		"expired":             {map[string]string{"Bullpen-Principal": signed("A", now.Add(-2*time.Minute), time.Minute)}, "expired at"},
		"from the future":     {map[string]string{"Bullpen-Principal": signed("A", now.Add(time.Minute), time.Minute)}, "a clock is wrong"},
		"far too long":        {map[string]string{"Bullpen-Principal": "p1." + strings.Repeat("A", 9000) + ".AAAA"}, "larger than"},
		"of no known kind":    {map[string]string{"Bullpen-Principal": claimed(&rpc.Principal{Kind: "root", Id: "ada"})}, "unknown kind"},
		"a service by another": {
			map[string]string{"Bullpen-Principal": claimed(&rpc.Principal{Kind: rpc.KindService, Id: "turn", Issuer: "mcphost"})}, "signs for itself",
		},
		"two callers at once":  {map[string]string{"Bullpen-Principal": good, "Authorization": "Bearer x"}, "more than one caller"},
		"basic authentication": {map[string]string{"Authorization": "Basic YWRhOng="}, "`Bearer` and an API token"},
		"a token, unwanted":    {map[string]string{"Authorization": "Bearer x"}, "takes no API tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothTransports(t, rpc.ServerOptions{Now: func() time.Time { return now }}, serving(whoami), func(t *testing.T, b *bundle) {
				_, err := headers(b.dial(), c.headers).VerifyToken(t.Context(), &toolv1.VerifyTokenRequest{Token: "t"})
				require.Equal(t, connect.CodeUnauthenticated, connect.CodeOf(err))
				f := rpc.FromError(err)
				require.Equal(t, fault.Forbidden, f.Class)
				require.Contains(t, f.Message, c.says)
				require.Empty(t, f.Outcome)
			})
		})
	}
}

func TestClocksMayLieThirtySecondsApart(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	keys, err := rpc.NewKeys(keyA)
	require.NoError(t, err)
	token := keys.At(func() time.Time { return now }).Sign(&rpc.Principal{Kind: rpc.KindSeat, Id: "ada"}, time.Minute)
	for at, ok := range map[time.Duration]bool{
		-31 * time.Second: false, -29 * time.Second: true, 89 * time.Second: true, 91 * time.Second: false,
	} {
		_, err := keys.Verify(token, now.Add(at))
		require.Equal(t, ok, err == nil, "at %s: %v", at, err)
	}
}

func TestKeysAreRotatedByOrder(t *testing.T) {
	t.Parallel()
	before, err := rpc.NewKeys(keyA)
	require.NoError(t, err)
	during, err := rpc.NewKeys(keyB, keyA)
	require.NoError(t, err)
	after, err := rpc.NewKeys(keyB)
	require.NoError(t, err)
	ada := &rpc.Principal{Kind: rpc.KindSeat, Id: "ada"}

	_, err = during.Verify(before.Sign(ada, 0), time.Now())
	require.NoError(t, err)
	_, err = after.Verify(during.Sign(ada, 0), time.Now())
	require.NoError(t, err)
	_, err = after.Verify(before.Sign(ada, 0), time.Now())
	require.Error(t, err)
}

func TestShortKeysAreRefused(t *testing.T) {
	t.Parallel()
	_, err := rpc.NewKeys(keyA, "short")
	require.EqualError(t, err, "principal key 2 has 5 bytes; a key must have at least 32")
	_, err = rpc.NewKeys()
	require.Error(t, err)
}

// verifier counts what reaches it.
type verifier struct {
	asked  atomic.Int32
	answer func(token string) (*rpc.Principal, error)
}

func (v *verifier) VerifyToken(_ context.Context, token string) (*rpc.Principal, error) {
	v.asked.Add(1)
	return v.answer(token)
}

func TestTokensAreVerifiedAndKeptForAWhile(t *testing.T) {
	t.Parallel()
	var now atomic.Int64
	clock := func() time.Time { return time.Unix(now.Load(), 0) }
	v := &verifier{answer: func(token string) (*rpc.Principal, error) {
		switch token {
		case "good":
			return &rpc.Principal{Kind: rpc.KindOperator, Id: "tok-1"}, nil
		case "brief":
			return &rpc.Principal{Kind: rpc.KindOperator, Id: "tok-2", ExpireTime: timestamppb.New(clock().Add(time.Second))}, nil
		case "outage":
			return nil, errors.New("company is away")
		default:
			return nil, fault.New(fault.Forbidden, "no such token")
		}
	}}
	b := newBundle(t, rpc.ServerOptions{Tokens: v, Now: clock}, serving(whoami))
	transport := overHTTP(t, b.server)
	call := func(token string) (*toolv1.VerifyTokenResponse, error) {
		return headers(transport, map[string]string{"Authorization": "bearer " + token}).
			VerifyToken(t.Context(), &toolv1.VerifyTokenRequest{Token: "t"})
	}
	for _, step := range []struct {
		token string
		at    int64
		asked int32
		code  connect.Code
	}{
		{"good", 0, 1, 0},
		{"good", 29, 1, 0},
		{"good", 31, 2, 0},
		{"brief", 31, 3, 0},
		{"brief", 33, 4, 0},
		{"bad", 33, 5, connect.CodeUnauthenticated},
		{"bad", 33, 6, connect.CodeUnauthenticated},
		{strings.Repeat("x", 300), 33, 6, connect.CodeUnauthenticated},
		{"outage", 33, 7, connect.CodeUnavailable},
	} {
		now.Store(step.at)
		res, err := call(step.token)
		require.Equal(t, step.asked, v.asked.Load(), "verifier asked after %q at %d", step.token, step.at)
		if step.code == 0 {
			require.NoError(t, err)
			require.Equal(t, rpc.KindOperator, res.GetPrincipal().GetKind())
			continue
		}
		require.Equal(t, step.code, connect.CodeOf(err))
	}
}

func TestOnlyNamedKindsMayCall(t *testing.T) {
	t.Parallel()
	forSeats := func(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		_, err := rpc.RequireKind(ctx, rpc.KindSeat, rpc.KindPerson)
		return &toolv1.VerifyTokenResponse{}, err
	}
	onBothTransports(t, rpc.ServerOptions{}, serving(forSeats), func(t *testing.T, b *bundle) {
		_, err := b.ask(t.Context())
		require.Equal(t, fault.Forbidden, rpc.FromError(err).Class)
		require.Equal(t, "a service may not call this; it is for seat or person", rpc.FromError(err).Message)
		_, err = b.ask(rpc.As(t.Context(), &rpc.Principal{Kind: rpc.KindSeat, Id: "ada"}))
		require.NoError(t, err)
	})
	_, err := rpc.RequireKind(t.Context(), rpc.KindSeat)
	require.Equal(t, fault.Forbidden, fault.ClassOf(err))
}

func TestOperationIDArrivesOrIsRefused(t *testing.T) {
	t.Parallel()
	echo := func(ctx context.Context, _ *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		return &toolv1.VerifyTokenResponse{Principal: &rpc.Principal{Id: rpc.OperationID(ctx)}}, nil
	}
	onBothTransports(t, rpc.ServerOptions{}, serving(echo), func(t *testing.T, b *bundle) {
		res, err := b.ask(rpc.WithOperation(t.Context(), "turn:7/create_item#2"))
		require.NoError(t, err)
		require.Equal(t, "turn:7/create_item#2", res.GetPrincipal().GetId())
		res, err = b.ask(t.Context())
		require.NoError(t, err)
		require.Empty(t, res.GetPrincipal().GetId())

		for _, bad := range []string{strings.Repeat("x", 129), "a b", "über"} {
			_, err = b.ask(rpc.WithOperation(t.Context(), bad))
			f := rpc.FromError(err)
			require.Equal(t, fault.Invalid, f.Class, bad)
			require.Contains(t, f.Message, "at most 128")
			require.Equal(t, "bullpen-operation", f.Field)
		}
	})
}
