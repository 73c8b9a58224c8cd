package bench

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/bench/upstream"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// seat is the one that calls.
const seat = "seat-0"

// CallOptions bound the benchmark of tool calls.
type CallOptions struct {
	Options
	// Rounds is how often each load runs with each arm, and Slice is how long.
	Rounds int
	Slice  time.Duration
	// WarmUp is how many calls each arm makes before anything is timed.
	WarmUp int
	// Workers and Bytes are the loads: how many call at a time, and how large the results are.
	Workers, Bytes []int
	// Calls is how many are made before the memory of a suite is read again.
	Calls int
	// Tools are the sizes of catalogue to list.
	Tools []int
}

// CallDefaults take about four minutes.
func CallDefaults(o Options) CallOptions {
	return CallOptions{
		Options: o, Rounds: 5, Slice: 300 * time.Millisecond, WarmUp: 200, Workers: []int{1, 8, 16, 32}, Bytes: []int{100, 10 << 10, 1 << 20},
		Calls: 20_000, Tools: []int{10, 100, 1000, 5000},
	}
}

// CallQuick takes seconds: it shows that everything that is measured works, and measures little.
func CallQuick(o Options) CallOptions {
	return CallOptions{
		Options: o, Rounds: 1, Slice: 20 * time.Millisecond, WarmUp: 20, Workers: []int{1, 8}, Bytes: []int{100, 10 << 10}, Calls: 200, Tools: []int{10, 100},
	}
}

// Call measures what a tool call costs that goes through the suite, beside the same call made directly to the same MCP server.
//
// The suite runs in this process, as a turn would find it; the upstreams run in processes of their own. Its memory is read from
// another suite, which does nothing but the calls.
func Call(ctx context.Context, o CallOptions) (report *Report, err error) {
	report = &Report{Area: "call", LoadBefore: load()}
	upstreamAtAddress, err := serveWeb(ctx, o.Executable)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, upstreamAtAddress.close()) }()
	document := callCompany(o.Executable, upstreamAtAddress.url)
	if err := callTimes(ctx, o, document, upstreamAtAddress.url, report); err != nil {
		return nil, err
	}
	if err := callMemory(ctx, o, document, report); err != nil {
		return nil, err
	}
	report.LoadAfter = load()
	return report, nil
}

// callTimes measures what is timed, in a suite of this process.
func callTimes(ctx context.Context, o CallOptions, document, url string, report *Report) (err error) {
	r, err := reside(ctx, document)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.leave()) }()
	if err := callCells(ctx, o, r, url, report); err != nil {
		return err
	}
	return catalogue(ctx, o, r, report)
}

// callCells measures every arm under every load.
func callCells(ctx context.Context, o CallOptions, r *resident, url string, report *Report) error {
	if err := awaitTools(ctx, toolregistryv1connect.NewToolRegistryServiceClient(r.client("turn")), seat, len(transports())); err != nil {
		return err
	}
	var serial atomic.Int64
	for _, transport := range transports() {
		session, err := connectDirectly(ctx, o.Executable, transport, url)
		if err != nil {
			return err
		}
		operator, hangUp, err := operatorArm(ctx, r, transport)
		if err != nil {
			return errors.Join(err, session.Close())
		}
		arms := []arm{sessionArm(direct, session, upstream.Tool), hostArm(r, transport), registryArm(r.client("turn"), transport), operator}
		for _, a := range arms {
			for range o.WarmUp {
				if err := a.call(ctx, int(serial.Add(1)), o.Bytes[0]); err != nil {
					return fmt.Errorf("%s: %w", a.name, err)
				}
			}
		}
		for _, bytes := range o.Bytes {
			for _, workers := range o.Workers {
				fmt.Fprintf(o.Watch, "%s upstream, %d bytes, workers: %d\n", transport, bytes, workers)
				cells, err := cell(ctx, o, arms, workers, bytes, &serial)
				if err != nil {
					return err
				}
				for n := range cells {
					cells[n].Transport = transport
				}
				report.Calls = append(report.Calls, cells...)
			}
		}
		if err := errors.Join(hangUp(), session.Close()); err != nil {
			return err
		}
	}
	callTargets(report)
	return nil
}

// callTargets picks out what the design has a figure for: small results, through the whole way.
func callTargets(report *Report) {
	for _, c := range report.Calls {
		if c.Arm != "host + registry" || c.Bytes != report.Calls[0].Bytes {
			continue
		}
		switch c.Workers {
		case 1:
			report.add(c.Transport+" upstream, 1 worker, host + registry: added p50", c.AddedP50, "ms", "<= 0.5")
			report.add(c.Transport+" upstream, 1 worker, host + registry: added p99", c.AddedP99, "ms", "<= 3")
		case 16:
			report.add(c.Transport+" upstream, 16 workers, host + registry: of the direct rate", c.Ratio, "", ">= 0.6")
		}
	}
}

// callMemory reads the memory of a suite in a process of its own, at rest and after many calls.
func callMemory(ctx context.Context, o CallOptions, document string, report *Report) (err error) {
	i, err := installCompany(ctx, o.Options, document)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, i.remove(ctx)) }()
	keys, err := i.suite.keys()
	if err != nil {
		return err
	}
	registry := toolregistryv1connect.NewToolRegistryServiceClient(rpc.NewClient(rpc.HTTPTransport(i.suite.url), rpc.ClientOptions{Service: "turn", Keys: keys}))
	if err := awaitTools(ctx, registry, seat, len(transports())); err != nil {
		return err
	}
	rest, err := i.suite.memory()
	if err != nil {
		return err
	}
	const workers = 8
	fmt.Fprintf(o.Watch, "%d calls to a suite of its own\n", o.Calls)
	var serial atomic.Int64
	if err := repeat(ctx, workers, o.Calls, func(ctx context.Context) error {
		n := int(serial.Add(1))
		answer, err := registry.CallTool(inTurn(ctx, seat), &toolregistryv1.CallToolRequest{
			Tool: transports()[n%len(transports())] + "_" + upstream.Tool, ArgumentsJson: upstream.Arguments(n, o.Bytes[0]),
		})
		if err != nil {
			return err
		}
		return right(answer.GetText(), n, o.Bytes[0])
	}); err != nil {
		return err
	}
	after, err := i.suite.memory()
	report.add("memory of a suite with two servers, before the calls", rest, "MB", "")
	report.add(fmt.Sprintf("memory after %d calls", o.Calls), after, "MB", "")
	return err
}

// scripted is a document's model, which nobody asks here.
const scripted = "providers: {llm: {default: {type: scripted, scenario: {rules: [{rounds: [{submit: {outcome: declined, summary: None.}}]}]}}}}\n"

// callCompany answers a document with the upstream over both transports, and a seat that may call both.
func callCompany(executable, url string) string {
	return fmt.Sprintf(`name: Bench
%smcp_servers:
  - {name: stdio, tool_prefix: stdio_, command: %q, args: [%s]}
  - {name: http, tool_prefix: http_, transport: http, url: %q}
units: [{name: Bench, roles: [{name: Seat, handle: %s}]}]
`, scripted, executable, UpstreamCommand, url, seat)
}

// awaitTools waits until a seat sees so many tools of servers.
func awaitTools(ctx context.Context, registry toolregistryv1connect.ToolRegistryServiceClient, handle string, count int) error {
	ctx, cancel := context.WithTimeout(ctx, readyPatience)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		answer, err := registry.ListTools(inTurn(ctx, handle), &toolregistryv1.ListToolsRequest{})
		brought := 0
		for _, t := range answer.GetTools() {
			if t.GetSource() != "builtin" && t.GetQuarantine() == "" {
				brought++
			}
		}
		if err == nil && brought >= count {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(fmt.Errorf("%s sees %d tools of servers instead of %d: %v", handle, brought, count, answer.GetMissingServers()), err)
		case <-ticker.C:
		}
	}
}

// upstreamProgram answers a company's line for one more upstream with many tools.
func upstreamProgram(executable, name string, others int) string {
	return fmt.Sprintf("  - {name: %[1]s, tool_prefix: %[1]s_, command: %[2]q, args: [%[3]s, --tools, %[4]q]}\n", name, executable, UpstreamCommand, fmt.Sprint(others))
}
