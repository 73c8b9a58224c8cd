package rpc

import (
	"context"
	"net/http"

	"connectrpc.com/connect/v2"
	"connectrpc.com/connect/v2/connecthttp"
	"connectrpc.com/grpchealth"
)

// minCompressed is the least size of an answer that is compressed for a caller who takes that: below it, the work costs more than the
// bytes it spares.
const minCompressed = 4 << 10

// Mount adds the routes of every procedure of s to mux, in Connect, gRPC and gRPC-Web. JSON is snake_case, unknown fields are
// refused by name, and no request message may exceed [MaxRequestBytes]. Call it after the last registration.
func Mount(mux *http.ServeMux, s *connect.Server) {
	connecthttp.Mount(mux, s, connecthttp.WithCodecs(codecs()...), connecthttp.WithReadMaxBytes(MaxRequestBytes),
		connecthttp.WithCompressMinBytes(minCompressed))
}

// MountHealth adds the gRPC health service, which asks nobody who they are. It answers for the process as a whole: every
// service in it serves while ready does.
func MountHealth(mux *http.ServeMux, ready func(ctx context.Context) bool) {
	path, handler := grpchealth.NewHandler(healthChecker(ready))
	mux.Handle(path, handler)
}

type healthChecker func(ctx context.Context) bool

// Check implements [grpchealth.Checker].
func (ready healthChecker) Check(ctx context.Context, _ *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	if ready(ctx) {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
}
