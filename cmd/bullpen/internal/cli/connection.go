package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"connectrpc.com/connect/v2"

	"github.com/bullpenhq/bullpen/libs/config"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// clientName is the principal of a command line that signs for itself.
const clientName = "cli"

// endpointFile names the file in the data directory by which a local installation is found.
const endpointFile = "endpoint.json"

// endpoint is what `bullpen up` writes there.
type endpoint struct {
	URL string `json:"url"`
	PID int    `json:"pid"`
}

// client answers a client for a service of the installation that the flags and the environment name. Credentials are an API
// token, or the keys that the installation's own services sign with.
func (a *app) client(service string) (*connect.Client, error) {
	base, err := a.address(service)
	if err != nil {
		return nil, err
	}
	transport := rpc.HTTPTransport(base)
	if token := a.credential(); token != "" {
		return connect.NewClient(transport, bearer(token)), nil
	}
	keys, err := a.keys()
	if err != nil {
		return nil, err
	}
	return rpc.NewClient(transport, rpc.ClientOptions{Service: clientName, Keys: keys}), nil
}

// address is the service's own when the environment gives it, as in compose, or the installation's one.
func (a *app) address(service string) (string, error) {
	if url := a.getenv(config.EnvName("peer." + service + "-url")); url != "" && a.server == "" {
		return url, nil
	}
	if a.server != "" {
		return strings.TrimRight(a.server, "/"), nil
	}
	text, err := os.ReadFile(filepath.Join(a.data, endpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("no installation runs on %q: start one with `bullpen up`, or name its data directory with --data, or its address with --server", a.data)
	}
	if err != nil {
		return "", err
	}
	var local endpoint
	if err := json.Unmarshal(text, &local); err != nil || local.URL == "" {
		return "", fmt.Errorf("%s is damaged: restart `bullpen up`, or give --server", filepath.Join(a.data, endpointFile))
	}
	return local.URL, nil
}

func (a *app) credential() string {
	if a.token != "" {
		return a.token
	}
	return a.getenv("BULLPEN_TOKEN")
}

func (a *app) keys() (*rpc.Keys, error) {
	text := a.getenv(config.EnvName("principal-keys"))
	if text == "" {
		file, err := os.ReadFile(filepath.Join(a.data, "keys", "principal"))
		if err != nil {
			return nil, errors.New("no credential: set BULLPEN_TOKEN to an API token (made by `bullpen token create`), or run on the installation's own data directory")
		}
		text = string(file)
	}
	var secrets []config.Secret
	for key := range strings.SplitSeq(text, ",") {
		if key = strings.TrimSpace(key); key != "" {
			secrets = append(secrets, config.Secret(key))
		}
	}
	return rpc.NewKeys(secrets...)
}

// operator makes the calls of ctx as the person at this command line, not as a service.
func operator(ctx context.Context) context.Context {
	return rpc.As(ctx, &rpc.Principal{Kind: rpc.KindOperator, Id: clientName, DisplayName: "command line"})
}

// bearer sends the token with every call.
func bearer(token string) connect.ClientInterceptor {
	return func(next connect.ClientFunc) connect.ClientFunc {
		return func(ctx context.Context, spec connect.Spec) (connect.ClientStream, error) {
			info, ok := connect.CallInfoForClientContext(ctx)
			if !ok {
				ctx, info = connect.NewClientContext(ctx)
			}
			info.RequestHeader().Set("Authorization", "Bearer "+token)
			return next(ctx, spec)
		}
	}
}
