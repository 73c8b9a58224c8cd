package pg

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// SQLSTATE codes that this package reads; the names are those of the Postgres manual.
const (
	uniqueViolation      = "23505"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	tooManyConnections   = "53300"
	adminShutdown        = "57P01"
	crashShutdown        = "57P02"
	cannotConnectNow     = "57P03"
	undefinedTable       = "42P01"

	classConnection = "08"
)

// IsUnique reports whether err is the violation of the named unique constraint or index.
func IsUnique(err error, constraint string) bool {
	pgErr, ok := errors.AsType[*pgconn.PgError](err)
	return ok && pgErr.Code == uniqueViolation && pgErr.ConstraintName == constraint
}

// Transient reports whether the same transaction may succeed if it is run again from its beginning: the connection was
// lost or could not be made, the server is starting, stopping or full, or the transaction lost to another one. A failed
// commit is included, and then nobody knows whether it happened: run again only what is safe to run twice.
//
// The end of the caller's own context is not transient, except while connecting, where it cannot be told from the
// attempt's own timeout: a loop looks at its context as well.
func Transient(err error) bool {
	if err == nil || errors.Is(err, context.Canceled) {
		return false
	}
	if pgErr, ok := errors.AsType[*pgconn.PgError](err); ok {
		switch pgErr.Code {
		case serializationFailure, deadlockDetected, tooManyConnections, adminShutdown, crashShutdown, cannotConnectNow:
			return true
		default:
			return strings.HasPrefix(pgErr.Code, classConnection)
		}
	}
	if _, ok := errors.AsType[*pgconn.ConnectError](err); ok {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return false
	}
	if _, ok := errors.AsType[net.Error](err); ok {
		return true
	}
	return errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgconn.ErrConnClosed) || pgconn.SafeToRetry(err)
}
