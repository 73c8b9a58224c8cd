package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/company/v1/companyv1connect"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
)

const (
	// toolsPerServer is how many an upstream of a large catalogue brings.
	toolsPerServer = 1000
	// coldLists and cachedLists are how often a catalogue is listed for a seat that nobody asked about, and for one that was.
	coldLists, cachedLists = 5, 50
)

// catalogue measures how long a seat's list of tools takes: the first time, when the servers run but nothing is known about the
// seat, and from then on.
func catalogue(ctx context.Context, o CallOptions, r *resident, report *Report) error {
	company := companyv1connect.NewCompanyServiceClient(r.client("bench"))
	registry := toolregistryv1connect.NewToolRegistryServiceClient(r.client("turn"))
	for _, tools := range o.Tools {
		fmt.Fprintf(o.Watch, "a catalogue of %d tools\n", tools)
		if _, err := company.PutCompany(ctx, &companyv1.PutCompanyRequest{Document: catalogueCompany(o.Executable, tools), Summary: "bench"}); err != nil {
			return err
		}
		// The sizes grow, so the company before brought fewer.
		if err := awaitTools(ctx, registry, seat, tools); err != nil {
			return err
		}
		var cold, cached distribution
		for n := range coldLists {
			took, err := list(ctx, registry, fmt.Sprintf("seat-%d", n+1), tools)
			if err != nil {
				return err
			}
			cold = append(cold, took)
		}
		for range cachedLists {
			took, err := list(ctx, registry, seat, tools)
			if err != nil {
				return err
			}
			cached = append(cached, took)
		}
		target := ""
		if tools == 5000 {
			target = "<= 5"
		}
		report.add(fmt.Sprintf("list %d tools of servers, first for a seat, p50", tools), ms(cold.quantile(0.5)), "ms", "")
		report.add(fmt.Sprintf("list %d tools of servers, from cache, p50", tools), ms(cached.quantile(0.5)), "ms", target)
		report.add(fmt.Sprintf("list %d tools of servers, from cache, the slowest", tools), ms(cached.quantile(1)), "ms", "")
	}
	return nil
}

// list lists a seat's tools and proves that all are there.
func list(ctx context.Context, registry toolregistryv1connect.ToolRegistryServiceClient, handle string, count int) (time.Duration, error) {
	began := time.Now()
	answer, err := registry.ListTools(inTurn(ctx, handle), &toolregistryv1.ListToolsRequest{})
	took := time.Since(began)
	if err == nil && len(answer.GetTools()) < count {
		err = fmt.Errorf("%s is shown %d tools and should be shown %d at least", handle, len(answer.GetTools()), count)
	}
	return took, err
}

// catalogueCompany answers a document with so many tools, over as many servers as they need.
func catalogueCompany(executable string, tools int) string {
	var servers, roles strings.Builder
	for n := 0; tools > 0; n++ {
		here := min(tools, toolsPerServer)
		servers.WriteString(upstreamProgram(executable, fmt.Sprintf("s%d", n), here-1))
		tools -= here
	}
	for n := range coldLists + 1 {
		fmt.Fprintf(&roles, "      - {name: Seat %d, handle: seat-%d}\n", n, n)
	}
	return "name: Bench\n" + scripted + "mcp_servers:\n" + servers.String() + "units:\n  - name: Bench\n    roles:\n" + roles.String()
}
