// Package servers sums up how the company's MCP servers do, over all nodes that report them.
package servers

import (
	"cmp"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
)

// States of a server over all nodes.
const (
	// Running: every child that has settled is ready.
	Running = "running"
	// PartlyFailing: some are ready and some have failed.
	PartlyFailing = "partly_failing"
	// Failing: none is ready and some have failed.
	Failing = "failing"
	// NotStarted: none has settled.
	NotStarted = "not_started"
	// NotReported: no node says anything of it. In a node's cell: it should run there, and that node does not.
	NotReported = "not_reported"
)

// States of one child, as mcphost spells them.
const (
	spawn, initialise, ready, shutdown, failed = "spawn", "initialise", "ready", "shutdown", "failed"
)

// Summarise answers every declared server in the order of the document, and after them those that a node still runs from an
// earlier revision. A shared server has a cell for each node that lives, as it should run on all of them; another one has cells for
// those that run it for a seat. company and reported may be nil.
func Summarise(company *companyv1.Company, reported *mcphostv1.ListServersResponse) []*toolregistryv1.McpServerStatus {
	byName := map[string]*mcphostv1.Server{}
	for _, server := range reported.GetServers() {
		byName[server.GetServer()] = server
	}
	var all []*toolregistryv1.McpServerStatus
	for _, declared := range company.GetMcpServers() {
		report := byName[declared.GetName()]
		delete(byName, declared.GetName())
		status := summarise(report.GetInstances())
		status.Server, status.Shared, status.Transport = declared.GetName(), declared.GetShared(), declared.GetTransport()
		if silent := len(report.GetInstances()) == 0; silent && (declared.GetShared() || len(reported.GetNodes()) == 0) {
			status.State = NotReported
		}
		if declared.GetShared() {
			miss(status, reported.GetNodes())
		}
		all = append(all, status)
	}
	for _, server := range reported.GetServers() {
		if byName[server.GetServer()] == nil {
			continue
		}
		status := summarise(server.GetInstances())
		status.Server, status.Shared, status.Transport = server.GetServer(), server.GetShared(), server.GetTransport()
		all = append(all, status)
	}
	return all
}

func summarise(instances []*mcphostv1.Instance) *toolregistryv1.McpServerStatus {
	status := &toolregistryv1.McpServerStatus{}
	nodes := map[string]*toolregistryv1.McpServerNode{}
	var good, bad int
	var first *mcphostv1.Instance
	for _, i := range instances {
		node, ok := nodes[i.GetNode()]
		if !ok {
			node = &toolregistryv1.McpServerNode{Node: i.GetNode()}
			nodes[i.GetNode()] = node
			status.Nodes = append(status.Nodes, node)
		}
		add(node, i)
		if status.GetAuthorizationUrl() == "" {
			status.AuthorizationUrl = i.GetAuthorizationUrl()
		}
		switch i.GetState() {
		case ready:
			good++
			status.ToolCount = max(status.GetToolCount(), i.GetToolCount())
		case failed:
			bad++
			if first == nil || when(i.GetStateTime()).Before(when(first.GetStateTime())) {
				first = i
			}
		}
	}
	sortNodes(status)
	status.Reason, status.Seat = first.GetReason(), first.GetSeat()
	switch {
	case good > 0 && bad > 0:
		status.State = PartlyFailing
	case good > 0:
		status.State = Running
	case bad > 0:
		status.State = Failing
	default:
		status.State = NotStarted
	}
	return status
}

// miss adds a cell for each live node that says nothing of the server.
func miss(status *toolregistryv1.McpServerStatus, live []*mcphostv1.Node) {
	reports := map[string]bool{}
	for _, n := range status.GetNodes() {
		reports[n.GetNode()] = true
	}
	for _, n := range live {
		if !reports[n.GetNode()] {
			status.Nodes = append(status.Nodes, &toolregistryv1.McpServerNode{Node: n.GetNode(), State: NotReported, ReportTime: n.GetReportTime()})
		}
	}
	sortNodes(status)
}

func sortNodes(status *toolregistryv1.McpServerStatus) {
	slices.SortFunc(status.GetNodes(), func(a, b *toolregistryv1.McpServerNode) int { return cmp.Compare(a.GetNode(), b.GetNode()) })
}

// add counts a child into its node's cell. The cell shows the worst state of the node's children.
func add(node *toolregistryv1.McpServerNode, i *mcphostv1.Instance) {
	if i.GetState() != shutdown {
		node.Instances++
	}
	if i.GetState() == ready {
		node.Ready++
	}
	if severity(i.GetState()) > severity(node.GetState()) {
		node.State = i.GetState()
	}
	if i.GetState() == failed && node.GetReason() == "" {
		node.Reason = i.GetReason()
	}
	if when(i.GetReportTime()).After(when(node.GetReportTime())) {
		node.ReportTime = i.GetReportTime()
	}
}

func severity(state string) int {
	switch state {
	case failed:
		return 5
	case spawn, initialise:
		return 4
	case ready:
		return 3
	case shutdown:
		return 2
	default:
		return 0
	}
}

// when answers the zero time for none, so that any time is after it.
func when(t *timestamppb.Timestamp) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.AsTime()
}
