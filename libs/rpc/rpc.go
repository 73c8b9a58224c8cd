// Package rpc is how the services call each other and are called: a Connect server and client that mean the same over HTTP
// and inside one process.
//
// The one idea to hold: everything a handler may rely on is settled before it runs, by the interceptors of [NewServer]. The
// caller is known and its signature checked ([PrincipalFrom]); the request is within its limits, and a refusal of one reads
// as a sentence; the call has a deadline that frees the caller even when the handler does not listen; a fault it returns
// reaches the caller with its class, and an error that is not a fault stays here, in the log.
//
//	otel → recover → observe → faults → principal → operation → deadline → validate → handler
//
// [InProcess] keeps the promises of the wire: no context value crosses it, causes stay behind, messages are copied.
//
// The package does not retry, balance or discover; the transport is given to [NewClient].
package rpc

import (
	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
)

// Principal is who makes a call. A value obtained from [PrincipalFrom] is shared by everything in that call: do not change it.
type Principal = toolv1.PrincipalClaims

// The kinds of principal.
const (
	KindSeat     = "seat"
	KindPerson   = "person"
	KindOperator = "operator"
	KindService  = "service"
)

// Headers of our own. They are never forwarded by themselves: what a handler calls on, it calls as its own service unless it
// says [As].
const (
	headerPrincipal = "Bullpen-Principal"
	headerOperation = "Bullpen-Operation"
)

const (
	// MaxRequestBytes is the largest request message a server reads, counted after decompression.
	MaxRequestBytes = 8 << 20
	// MaxResponseBytes is the largest response message a client reads. It is wider because results are never cut.
	MaxResponseBytes = 32 << 20
)
