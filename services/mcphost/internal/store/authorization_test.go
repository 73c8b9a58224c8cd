package store_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

func TestARegistrationIsReplacedOnlyByWhoeverSawIt(t *testing.T) {
	t.Parallel()
	s, _, _ := both(t)
	kept := func() []byte {
		data, err := s.AuthorizationClient(t.Context(), "crm", "https://issuer", "https://back")
		require.NoError(t, err)
		return data
	}
	replace := func(before, after []byte) {
		require.NoError(t, s.ReplaceAuthorizationClient(t.Context(), "crm", "https://issuer", "https://back", before, after))
	}
	require.Nil(t, kept())
	replace(nil, []byte("one"))
	replace(nil, []byte("two"))
	require.Equal(t, "one", string(kept()), "the first stays")
	replace([]byte("two"), []byte("three"))
	require.Equal(t, "one", string(kept()))
	replace([]byte("one"), []byte("three"))
	replace([]byte("one"), nil)
	require.Equal(t, "three", string(kept()))
	replace([]byte("three"), nil)
	require.Nil(t, kept())
}

func TestADeclaredClientIsOfTheFirstIssuer(t *testing.T) {
	t.Parallel()
	s, _, _ := both(t)
	for _, issuer := range []string{"https://one", "https://two", "https://one"} {
		pinned, err := s.PinIssuer(t.Context(), "crm", "us", issuer)
		require.NoError(t, err)
		require.Equal(t, "https://one", pinned)
	}
	pinned, err := s.PinIssuer(t.Context(), "crm", "them", "https://two")
	require.NoError(t, err)
	require.Equal(t, "https://two", pinned)
}

func TestATokenIsChangedByOneAtATime(t *testing.T) {
	t.Parallel()
	s, _, _ := both(t)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for range 5 {
				err := s.ChangeAuthorizationToken(t.Context(), "crm", "ada", "https://crm", func(sealed []byte) ([]byte, error) {
					return append(sealed, 'x'), nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	data, err := s.AuthorizationToken(t.Context(), "crm", "ada", "https://crm")
	require.NoError(t, err)
	require.Len(t, data, 20)

	broken := errors.New("no")
	require.ErrorIs(t, s.ChangeAuthorizationToken(t.Context(), "crm", "ada", "https://crm", func([]byte) ([]byte, error) { return nil, broken }), broken)
	require.NoError(t, s.ChangeAuthorizationToken(t.Context(), "crm", "ada", "https://crm", func(sealed []byte) ([]byte, error) {
		require.Len(t, sealed, 20, "a change that fails changes nothing")
		return nil, nil
	}))
	data, err = s.AuthorizationToken(t.Context(), "crm", "ada", "https://crm")
	require.NoError(t, err)
	require.Nil(t, data)
}

func TestAConsentIsTakenOnceAndStaysWhileItAsksTheSame(t *testing.T) {
	t.Parallel()
	s, _, _ := both(t)
	ask := func(state, question string, left time.Duration) {
		require.NoError(t, s.PutConsent(t.Context(), []byte(state), store.Consent{
			Server: "crm", Seat: "ada", Question: []byte(question), Sealed: []byte("for " + state), Left: left,
		}, time.Minute))
	}
	ask("one", "read", time.Hour)
	ask("two", "read", time.Hour)
	taken, err := s.TakeConsent(t.Context(), []byte("two"))
	require.NoError(t, err)
	require.Nil(t, taken, "the first page stays")
	ask("three", "read and write", 30*time.Second)
	open, err := s.Consents(t.Context())
	require.NoError(t, err)
	require.Len(t, open, 1)
	require.Equal(t, "for three", string(open[0].Sealed))
	ask("four", "read and write", time.Hour)
	taken, err = s.TakeConsent(t.Context(), []byte("three"))
	require.NoError(t, err)
	require.Nil(t, taken, "it had too little time left")
	taken, err = s.TakeConsent(t.Context(), []byte("four"))
	require.NoError(t, err)
	require.Equal(t, "crm", taken.Server)
	require.Equal(t, "ada", taken.Seat)
	taken, err = s.TakeConsent(t.Context(), []byte("four"))
	require.NoError(t, err)
	require.Nil(t, taken)
	ask("five", "read", -time.Second)
	open, err = s.Consents(t.Context())
	require.NoError(t, err)
	require.Empty(t, open)
	ask("six", "read", time.Hour)
	require.NoError(t, s.DropConsent(t.Context(), "crm", "ada"))
	taken, err = s.TakeConsent(t.Context(), []byte("six"))
	require.NoError(t, err)
	require.Nil(t, taken)
}

func TestIssuersThatTakeTheirTimeDoNotKeepLeasesFromBeingRenewed(t *testing.T) {
	t.Parallel()
	s, _, pool := both(t)
	answer := make(chan struct{})
	var group sync.WaitGroup
	for i := range 2 * pool.Config().MaxConns {
		group.Go(func() {
			err := s.ChangeAuthorizationToken(t.Context(), "crm", fmt.Sprintf("seat%d", i), "https://crm", func([]byte) ([]byte, error) {
				<-answer
				return []byte("x"), nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	// Each change comes one connection further, until there is none, or none more is taken.
	const patience = 10 * time.Second
	for range pool.Config().MaxConns {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		_, err := s.RenewLeases(ctx, []string{"ada"}, []string{}, time.Minute)
		cancel()
		if err != nil {
			t.Error(err) // what waits for an answer must get it first
			break
		}
	}
	close(answer)
	group.Wait()
}
