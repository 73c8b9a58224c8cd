package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/pg"
)

const (
	authorizationClient = `select sealed from authorization_clients where server = $1 and issuer = $2 and redirect_uri = $3`
	// replaceAuthorizationClient changes a row only if it is as it was; $5 is null where there was none.
	replaceAuthorizationClient = `
insert into authorization_clients as c (server, issuer, redirect_uri, sealed) values ($1, $2, $3, $4)
on conflict (server, issuer, redirect_uri) do update set sealed = excluded.sealed, registered_at = now() where c.sealed = $5`
	deleteAuthorizationClient = `delete from authorization_clients where server = $1 and issuer = $2 and redirect_uri = $3 and sealed = $4`

	// pinIssuer answers the issuer that was pinned first.
	pinIssuer = `
insert into authorization_issuers as a (server, client_id, issuer) values ($1, $2, $3)
on conflict (server, client_id) do update set issuer = a.issuer
returning issuer`

	authorizationToken = `select sealed from authorization_tokens where server = $1 and seat = $2 and resource = $3`
	// lockToken makes those who change one token take turns, whether there is a row yet or not.
	lockToken                = `select pg_advisory_xact_lock(hashtextextended(format('%s/%s/%s', $1::text, $2::text, $3::text), 0))`
	upsertAuthorizationToken = `
insert into authorization_tokens (server, seat, resource, sealed) values ($1, $2, $3, $4)
on conflict (server, seat, resource) do update set sealed = excluded.sealed, changed_at = now()`
	deleteAuthorizationToken = `delete from authorization_tokens where server = $1 and seat = $2 and resource = $3`

	sweepConsents = `delete from authorization_consents where expires_at < now()`
	// upsertConsent leaves one that asks the same and has more than $7 seconds left: somebody may have its page open.
	upsertConsent = `
insert into authorization_consents as c (state, server, seat, question, sealed, expires_at)
values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
on conflict (server, seat) do update
set state = excluded.state, question = excluded.question, sealed = excluded.sealed, expires_at = excluded.expires_at
where c.question <> excluded.question or c.expires_at < now() + make_interval(secs => $7)`
	takeConsent   = `delete from authorization_consents where state = $1 returning server, seat, sealed, expires_at < now()`
	openConsents  = `select server, seat, sealed from authorization_consents where expires_at > now()`
	deleteConsent = `delete from authorization_consents where server = $1 and seat = $2`
)

// AuthorizationClient answers a registration, nil when there is none.
func (s *Store) AuthorizationClient(ctx context.Context, server, issuer, redirectURI string) ([]byte, error) {
	return s.sealed(ctx, authorizationClient, server, issuer, redirectURI)
}

// ReplaceAuthorizationClient keeps a registration in place of before, nil for none; nil in place of one forgets it. When it is not
// before that is kept, somebody was faster, and nothing is changed.
func (s *Store) ReplaceAuthorizationClient(ctx context.Context, server, issuer, redirectURI string, before, sealed []byte) error {
	statement, arguments := replaceAuthorizationClient, []any{server, issuer, redirectURI, sealed, before}
	if sealed == nil {
		statement, arguments = deleteAuthorizationClient, []any{server, issuer, redirectURI, before}
	}
	if _, err := s.pool.Exec(ctx, statement, arguments...); err != nil {
		return fmt.Errorf("write a registered client: %w", err)
	}
	return nil
}

// PinIssuer answers which issuer a declared client is of: this one, when none is known yet.
func (s *Store) PinIssuer(ctx context.Context, server, clientID, issuer string) (pinned string, err error) {
	if err := s.pool.QueryRow(ctx, pinIssuer, server, clientID, issuer).Scan(&pinned); err != nil {
		return "", fmt.Errorf("pin an issuer: %w", err)
	}
	return pinned, nil
}

// AuthorizationToken answers a token, nil when there is none.
func (s *Store) AuthorizationToken(ctx context.Context, server, seat, resource string) ([]byte, error) {
	return s.sealed(ctx, authorizationToken, server, seat, resource)
}

// changeShare is the part of the connections that changes of tokens may hold at a time, one in so many: each waits for an issuer,
// and a seat whose lease finds no connection is lost.
const changeShare = 4

// ChangeAuthorizationToken replaces a token by what change makes of it, nil for none, while everybody else who would change it waits:
// a refresh token is good for one use. A change that fails changes nothing.
func (s *Store) ChangeAuthorizationToken(ctx context.Context, server, seat, resource string, change func(sealed []byte) ([]byte, error)) error {
	select {
	case s.changing <- struct{}{}:
	case <-ctx.Done():
		return fmt.Errorf("wait to change a token: %w", context.Cause(ctx))
	}
	defer func() { <-s.changing }()
	return pg.InTx(ctx, s.pool, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, lockToken, server, seat, resource); err != nil {
			return fmt.Errorf("lock a token: %w", err)
		}
		var before []byte
		if err := tx.QueryRow(ctx, authorizationToken, server, seat, resource).Scan(&before); err != nil && !errors.Is(err, pgx.ErrNoRows) {
			return fmt.Errorf("read a token: %w", err)
		}
		after, err := change(before)
		if err != nil {
			return err
		}
		statement, arguments := upsertAuthorizationToken, []any{server, seat, resource, after}
		if after == nil {
			statement, arguments = deleteAuthorizationToken, arguments[:3]
		}
		if _, err := tx.Exec(ctx, statement, arguments...); err != nil {
			return fmt.Errorf("write a token: %w", err)
		}
		return nil
	})
}

// Consent is one that an operator was asked for.
type Consent struct {
	Server, Seat string
	// Question is a digest of what is asked; it is written, and not read.
	Question []byte
	Sealed   []byte
	// Left is how long it can be given; it is written, and not read.
	Left time.Duration
}

// PutConsent keeps a consent under a digest of its state, in place of another for the same server and seat, unless that asks the same
// and has at least enough time left.
func (s *Store) PutConsent(ctx context.Context, state []byte, c Consent, enough time.Duration) error {
	batch := &pgx.Batch{}
	batch.Queue(sweepConsents)
	batch.Queue(upsertConsent, state, c.Server, c.Seat, c.Question, c.Sealed, c.Left.Seconds(), enough.Seconds())
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return fmt.Errorf("write a consent: %w", err)
	}
	return nil
}

// TakeConsent answers a consent and forgets it; nil when there is none that can still be given.
func (s *Store) TakeConsent(ctx context.Context, state []byte) (*Consent, error) {
	var c Consent
	var late bool
	switch err := s.pool.QueryRow(ctx, takeConsent, state).Scan(&c.Server, &c.Seat, &c.Sealed, &late); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("take a consent: %w", err)
	case late:
		return nil, nil
	}
	return &c, nil
}

// Consents answers those that can still be given.
func (s *Store) Consents(ctx context.Context) ([]Consent, error) {
	rows, err := s.pool.Query(ctx, openConsents)
	if err != nil {
		return nil, fmt.Errorf("list consents: %w", err)
	}
	return pgx.CollectRows(rows, func(row pgx.CollectableRow) (Consent, error) {
		var c Consent
		return c, row.Scan(&c.Server, &c.Seat, &c.Sealed)
	})
}

// DropConsent forgets what an operator was asked for.
func (s *Store) DropConsent(ctx context.Context, server, seat string) error {
	if _, err := s.pool.Exec(ctx, deleteConsent, server, seat); err != nil {
		return fmt.Errorf("drop a consent: %w", err)
	}
	return nil
}

func (s *Store) sealed(ctx context.Context, statement string, arguments ...any) (sealed []byte, err error) {
	switch err := s.pool.QueryRow(ctx, statement, arguments...).Scan(&sealed); {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read what is sealed: %w", err)
	}
	return sealed, nil
}
