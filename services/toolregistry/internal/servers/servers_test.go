package servers_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/servers"
)

func instance(node, seat, state, reason string, second int64) *mcphostv1.Instance {
	at := timestamppb.New(time.Unix(second, 0))
	return &mcphostv1.Instance{Node: node, Seat: seat, State: state, Reason: reason, ToolCount: 3, StateTime: at, ReportTime: at}
}

func live(names ...string) []*mcphostv1.Node {
	var nodes []*mcphostv1.Node
	for _, name := range names {
		nodes = append(nodes, &mcphostv1.Node{Node: name, ReportTime: timestamppb.New(time.Unix(50, 0))})
	}
	return nodes
}

func TestStatesOverAllNodes(t *testing.T) {
	t.Parallel()
	company := &companyv1.Company{McpServers: []*companyv1.McpServer{{Name: "gh", Transport: "http"}}}
	for name, c := range map[string]struct {
		instances []*mcphostv1.Instance
		want      string
	}{
		"all ready is running":                {[]*mcphostv1.Instance{instance("n1", "ada", "ready", "", 1), instance("n2", "bo", "ready", "", 1)}, servers.Running},
		"ready beside starting is running":    {[]*mcphostv1.Instance{instance("n1", "ada", "ready", "", 1), instance("n1", "bo", "spawn", "", 1)}, servers.Running},
		"ready beside failed is part failing": {[]*mcphostv1.Instance{instance("n1", "ada", "ready", "", 1), instance("n1", "bo", "failed", "bad token", 1)}, servers.PartlyFailing},
		"failed alone is failing":             {[]*mcphostv1.Instance{instance("n1", "ada", "failed", "bad token", 1)}, servers.Failing},
		"starting alone has not started":      {[]*mcphostv1.Instance{instance("n1", "ada", "initialise", "", 1)}, servers.NotStarted},
		"no child has not started":            {nil, servers.NotStarted}, // no seat needs it yet
	} {
		got := servers.Summarise(company, &mcphostv1.ListServersResponse{Servers: []*mcphostv1.Server{{Server: "gh", Instances: c.instances}}, Nodes: live("n1")})
		require.Equal(t, c.want, got[0].GetState(), name)
	}
	require.Equal(t, servers.NotReported, servers.Summarise(company, nil)[0].GetState())
}

func TestACellForEachNodeAndTheFirstFailureOfAll(t *testing.T) {
	t.Parallel()
	company := &companyv1.Company{McpServers: []*companyv1.McpServer{{Name: "gh", Transport: "http", Shared: false}, {Name: "wiki", Shared: true}}}
	consent := instance("n2", "el", "failed", "an operator must consent first", 30)
	consent.AuthorizationUrl = "https://auth.example/authorize?state=x"
	got := servers.Summarise(company, &mcphostv1.ListServersResponse{Nodes: live("n1", "n2", "n3"), Servers: []*mcphostv1.Server{
		{Server: "old", Shared: true, Transport: "stdio"},
		{Server: "gh", Instances: []*mcphostv1.Instance{
			instance("n2", "bo", "failed", "second", 20), instance("n1", "ada", "ready", "", 5), instance("n1", "cy", "failed", "first", 10),
			instance("n1", "di", "shutdown", "", 7), consent,
		}},
	}})
	require.Len(t, got, 3)
	gh := got[0]
	require.Equal(t, "first", gh.GetReason())
	require.Equal(t, "cy", gh.GetSeat())
	require.Equal(t, consent.GetAuthorizationUrl(), gh.GetAuthorizationUrl())
	require.Equal(t, int32(3), gh.GetToolCount())
	require.Len(t, gh.GetNodes(), 2, "n3 runs it for nobody")
	n1 := gh.GetNodes()[0]
	require.Equal(t, "n1", n1.GetNode())
	require.Equal(t, "failed", n1.GetState())
	require.Equal(t, int32(2), n1.GetInstances())
	require.Equal(t, int32(1), n1.GetReady())
	require.Equal(t, int64(10), n1.GetReportTime().GetSeconds())
	require.Equal(t, servers.NotReported, got[1].GetState())
	require.Equal(t, "old", got[2].GetServer(), "what a node still runs is shown too")
}

func TestASharedServerHasACellForEveryNodeThatLives(t *testing.T) {
	t.Parallel()
	company := &companyv1.Company{McpServers: []*companyv1.McpServer{{Name: "wiki", Shared: true}, {Name: "gh"}}}
	state := func(instances ...*mcphostv1.Instance) *toolregistryv1.McpServerStatus {
		return servers.Summarise(company, &mcphostv1.ListServersResponse{Nodes: live("n2", "n1"), Servers: []*mcphostv1.Server{{Server: "wiki", Instances: instances}}})[0]
	}
	wiki := state(instance("n2", "", "ready", "", 5))
	require.Equal(t, servers.Running, wiki.GetState())
	require.Len(t, wiki.GetNodes(), 2)
	missing := wiki.GetNodes()[0]
	require.Equal(t, "n1", missing.GetNode())
	require.Equal(t, servers.NotReported, missing.GetState())
	require.Zero(t, missing.GetInstances())
	require.Equal(t, int64(50), missing.GetReportTime().GetSeconds(), "the node is alive")
	require.Equal(t, "ready", wiki.GetNodes()[1].GetState())

	nowhere := state()
	require.Equal(t, servers.NotReported, nowhere.GetState())
	require.Len(t, nowhere.GetNodes(), 2)
	require.Equal(t, servers.NotStarted, servers.Summarise(company, &mcphostv1.ListServersResponse{Nodes: live("n1")})[1].GetState(), "nobody needs it yet")
	require.Equal(t, servers.NotReported, servers.Summarise(company, &mcphostv1.ListServersResponse{})[1].GetState(), "no node lives")
}
