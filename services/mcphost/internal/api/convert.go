package api

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"google.golang.org/protobuf/types/known/timestamppb"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	mcphostv1 "github.com/bullpenhq/bullpen/gen/bullpen/mcphost/v1"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/fleet"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/server"
	"github.com/bullpenhq/bullpen/services/mcphost/internal/store"
)

// serversToProto answers the declared servers in document order, and after them what nodes still run of an earlier revision. pages
// are where operators consent, by server and seat.
func serversToProto(declared []*companyv1.McpServer, reports []store.Report, pages map[[2]string]string) []*mcphostv1.Server {
	all := make([]*mcphostv1.Server, 0, len(declared))
	byName := map[string]*mcphostv1.Server{}
	for _, d := range declared {
		s := &mcphostv1.Server{Server: d.GetName(), Shared: d.GetShared(), Transport: d.GetTransport()}
		byName[d.GetName()] = s
		all = append(all, s)
	}
	for _, r := range reports {
		s := byName[r.Server]
		if s == nil {
			s = &mcphostv1.Server{Server: r.Server, Shared: r.Seat == ""}
			byName[r.Server] = s
			all = append(all, s)
		}
		s.Instances = append(s.Instances, &mcphostv1.Instance{
			Node: r.Node, Seat: r.Seat, State: string(r.State), Reason: r.Reason, ToolCount: int32(r.Tools), Starts: int32(r.Starts),
			StateTime: timestamppb.New(r.At), ReportTime: timestamppb.New(r.ReportedAt), ProtocolVersion: r.Protocol,
			AuthorizationUrl: pages[[2]string{r.Server, r.Seat}],
		})
	}
	return all
}

func nodesToProto(live []store.Beat) []*mcphostv1.Node {
	nodes := make([]*mcphostv1.Node, 0, len(live))
	for _, n := range live {
		nodes = append(nodes, &mcphostv1.Node{Node: n.Node, ReportTime: timestamppb.New(n.At)})
	}
	return nodes
}

// maxListing is how much of tools an answer can carry, with what stands around them.
const maxListing = 30 << 20

// withhold takes the tools of a server out of an answer that has no room for them, and answers how much they take otherwise. The
// servers before it are not to blame.
func withhold(v *fleet.View, room int) int {
	size := 0
	for _, tool := range v.Tools {
		size += len(tool)
	}
	if size <= room {
		return size
	}
	v.State, v.Tools = server.Failed, nil
	v.Reason = fmt.Sprintf("its tools take %d bytes, and beside those of the servers before it only %d are left", size, room)
	return 0
}

// toolsToProto leaves the servers out when the answer is the one that the caller knows.
func toolsToProto(views []fleet.View, known string) *mcphostv1.ListServerToolsResponse {
	response := &mcphostv1.ListServerToolsResponse{}
	sum := sha256.New()
	room := maxListing
	for _, v := range views {
		room -= withhold(&v, room)
		response.Servers = append(response.Servers, &mcphostv1.ServerTools{
			Server: v.Server, Own: v.Own, State: string(v.State), Reason: v.Reason,
			ToolPrefix: v.Prefix, Surfaces: v.Surfaces, ToolsJson: v.Tools, Digest: v.Digest,
			CapabilitiesJson: v.Capabilities, Instructions: v.Instructions,
		})
		// State and reason count as well: whoever shows the tools shows what is missing, and why.
		fmt.Fprintf(sum, "%q %t %q %q %q %q %q %q %q\n", v.Server, v.Own, v.State, v.Reason, v.Prefix, v.Surfaces, v.Digest, v.Capabilities, v.Instructions)
	}
	response.Digest = hex.EncodeToString(sum.Sum(nil))
	if response.GetDigest() == known {
		response.Servers, response.Unchanged = nil, true
	}
	return response
}
