package mcphost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/durationpb"

	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
)

// maxConsents is how often an operator consents in one scenario.
const maxConsents = 4

// player is a caller of the host, and the operator at its side.
type player struct {
	host     *node
	server   string
	consents int
}

// grantOf answers how a scenario's server is authorised at; empty for one that wants nothing.
func grantOf(name string) string {
	switch {
	case strings.HasPrefix(name, "auth/client-credentials"):
		return "client_credentials"
	case strings.HasPrefix(name, "auth/"):
		return "authorization_code"
	default:
		return ""
	}
}

// eventually asks again until it holds or ctx ends.
func eventually(ctx context.Context, holds func() (bool, error)) error {
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := holds()
		if ok || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tool is one as its server wrote it.
type tool struct {
	Name        string          `json:"name"`
	InputSchema json.RawMessage `json:"inputSchema"`
}

// tools answers the server's tools, consenting where it must be consented.
func (p *player) tools(ctx context.Context) ([]tool, error) {
	for {
		answer, err := p.host.ListServerTools(ctx, &mcphostv1.ListServerToolsRequest{Server: p.server, Wait: durationpb.New(time.Minute)})
		if err != nil {
			return nil, err
		}
		s := answer.GetServers()[0]
		if s.GetState() == "ready" {
			var tools []tool
			for _, text := range s.GetToolsJson() {
				var t tool
				if err := json.Unmarshal([]byte(text), &t); err != nil {
					return nil, err
				}
				tools = append(tools, t)
			}
			return tools, nil
		}
		if consented, err := p.consent(ctx); !consented {
			return nil, errors.Join(fmt.Errorf("the server is %s: %s", s.GetState(), s.GetReason()), err)
		}
		// What it waited for has come: it is not failed any more in a moment.
		err = eventually(ctx, func() (bool, error) {
			answer, err := p.host.ListServerTools(ctx, &mcphostv1.ListServerToolsRequest{Server: p.server, Wait: durationpb.New(time.Second)})
			return err == nil && (answer.GetServers()[0].GetState() != "failed" || answer.GetServers()[0].GetReason() != s.GetReason()), err
		})
		if err != nil {
			return nil, err
		}
	}
}

// consent opens the page that the list of servers says to open, as an operator's browser does. It answers false when there is none,
// and an error when the host does not take what the browser comes back with.
func (p *player) consent(ctx context.Context) (bool, error) {
	page, err := p.page(ctx)
	if err != nil || page == "" {
		return false, err
	}
	if p.consents++; p.consents > maxConsents {
		return false, fmt.Errorf("an operator was asked for more than %d consents", maxConsents)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return false, err
	}
	response, err := (&http.Client{Timeout: time.Minute}).Do(request)
	if err != nil {
		return false, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return false, err
	}
	if response.StatusCode != http.StatusOK {
		return false, fmt.Errorf("the browser ended with status %d: %s", response.StatusCode, text)
	}
	return true, nil
}

func (p *player) page(ctx context.Context) (string, error) {
	answer, err := p.host.ListServers(ctx, &mcphostv1.ListServersRequest{})
	for _, s := range answer.GetServers() {
		for _, i := range s.GetInstances() {
			if s.GetServer() == p.server && i.GetAuthorizationUrl() != "" {
				return i.GetAuthorizationUrl(), nil
			}
		}
	}
	return "", err
}

// call calls a tool, and once more after each consent that it turns out to need.
func (p *player) call(ctx context.Context, name string, arguments any) error {
	data, err := json.Marshal(arguments)
	if err != nil {
		return err
	}
	for {
		_, err := p.host.CallServerTool(ctx, &mcphostv1.CallServerToolRequest{
			Server: p.server, Tool: name, ArgumentsJson: string(data), Timeout: durationpb.New(time.Minute),
		})
		if err == nil {
			return nil
		}
		if consented, wrong := p.consent(ctx); !consented {
			return errors.Join(err, wrong)
		}
	}
}

// act does what a scenario expects of a client, beyond listing the tools.
func (p *player) act(ctx context.Context, s scenario, tools []tool) error {
	switch s.Name {
	case "initialize", "request-metadata", "json-schema-ref-no-deref":
		return nil
	case "tools_call":
		return p.call(ctx, "add_numbers", map[string]int{"a": 5, "b": 3})
	case "sse-retry":
		return p.call(ctx, "test_reconnection", struct{}{})
	case "http-custom-headers":
		return p.callGiven(ctx, s)
	case "http-invalid-tool-headers":
		var errs []error
		for _, t := range tools {
			errs = append(errs, p.call(ctx, t.Name, map[string]string{"region": "us-west1"}))
		}
		return errors.Join(errs...)
	case "json-schema-2020-12-preservation":
		for _, t := range tools {
			if t.Name == "json_schema_2020_12_tool" {
				return p.call(ctx, "json_schema_echo", map[string]any{"schema": t.InputSchema})
			}
		}
		return errors.New("json_schema_2020_12_tool is not listed")
	case "http-standard-headers":
		return p.visit(ctx, tools)
	case "elicitation-sep1034-client-defaults":
		_, err := p.converse(ctx, "tools/call", map[string]any{"name": "test_client_elicitation_defaults", "arguments": struct{}{}})
		return err
	case "sep-2322-client-request-state":
		for _, name := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_unrelated", "test_mrtr_no_result_type"} {
			if _, err := p.converse(ctx, "tools/call", map[string]any{"name": name, "arguments": struct{}{}}); err != nil {
				return err
			}
		}
		return nil
	default:
		if !strings.HasPrefix(s.Name, "auth/") {
			return errors.New("nobody plays this scenario")
		}
		return p.call(ctx, "test-tool", struct{}{})
	}
}

// callGiven makes the calls that the suite names.
func (p *player) callGiven(ctx context.Context, s scenario) error {
	var given struct {
		Calls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal(s.Context, &given); err != nil {
		return err
	}
	var errs []error
	for _, c := range given.Calls {
		errs = append(errs, p.call(ctx, c.Name, c.Arguments))
	}
	return errors.Join(errs...)
}

// visit uses the first of everything that the server has.
func (p *player) visit(ctx context.Context, tools []tool) error {
	if len(tools) > 0 {
		if err := p.call(ctx, tools[0].Name, struct{}{}); err != nil {
			return err
		}
	}
	var found struct {
		Resources []struct {
			URI string `json:"uri"`
		} `json:"resources"`
		Prompts []struct {
			Name string `json:"name"`
		} `json:"prompts"`
	}
	for _, method := range []string{"resources/list", "prompts/list"} {
		result, err := p.converse(ctx, method, struct{}{})
		if err == nil {
			err = json.Unmarshal(result, &found)
		}
		if err != nil {
			return err
		}
	}
	for _, r := range found.Resources[:min(1, len(found.Resources))] {
		if _, err := p.converse(ctx, "resources/read", map[string]string{"uri": r.URI}); err != nil {
			return err
		}
	}
	for _, r := range found.Prompts[:min(1, len(found.Prompts))] {
		if _, err := p.converse(ctx, "prompts/get", map[string]any{"name": r.Name, "arguments": struct{}{}}); err != nil {
			return err
		}
	}
	return nil
}

// converse makes a request and answers the server's questions, filling forms with their defaults, until it has the result.
func (p *player) converse(ctx context.Context, method string, params any) (json.RawMessage, error) {
	const mostRounds = 5
	data, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	for range mostRounds {
		result, err := p.exchange(ctx, method, data)
		if err != nil {
			return nil, err
		}
		var asked struct {
			Type     string              `json:"resultType"`
			Requests map[string]question `json:"inputRequests"`
			State    json.RawMessage     `json:"requestState"`
		}
		if err := json.Unmarshal(result, &asked); err != nil || asked.Type != "input_required" {
			return result, err
		}
		var next map[string]any
		if err := json.Unmarshal(data, &next); err != nil {
			return nil, err
		}
		answers := map[string]any{}
		for key, q := range asked.Requests {
			answers[key] = map[string]any{"action": "accept", "content": q.filled()}
		}
		next["inputResponses"] = answers
		delete(next, "requestState")
		if asked.State != nil {
			next["requestState"] = asked.State
		}
		if data, err = json.Marshal(next); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("%s asks for ever", method)
}

// question is a form that a server wants filled.
type question struct {
	Params struct {
		Schema struct {
			Properties map[string]struct {
				Type    string          `json:"type"`
				Default json.RawMessage `json:"default"`
			} `json:"properties"`
		} `json:"requestedSchema"`
	} `json:"params"`
}

// filled is a form as somebody sends it who agrees and changes nothing.
func (q question) filled() map[string]any {
	content := map[string]any{}
	for name, p := range q.Params.Schema.Properties {
		switch {
		case p.Default != nil:
			content[name] = p.Default
		case p.Type == "boolean":
			content[name] = true
		}
	}
	return content
}

// exchange makes one round.
func (p *player) exchange(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	stream, err := p.host.Exchange(ctx, &mcphostv1.ExchangeRequest{
		Server: p.server, Method: method, ParamsJson: string(params), ClientCapabilitiesJson: `{"elicitation":{"form":{}}}`, Timeout: durationpb.New(time.Minute),
	})
	if err != nil {
		return nil, err
	}
	defer stream.Close()
	for {
		message, err := stream.Receive()
		switch {
		case err != nil:
			return nil, err
		case message.GetErrorJson() != "":
			return nil, fmt.Errorf("%s: %s", method, message.GetErrorJson())
		case message.GetResultJson() != "":
			return json.RawMessage(message.GetResultJson()), nil
		}
	}
}
