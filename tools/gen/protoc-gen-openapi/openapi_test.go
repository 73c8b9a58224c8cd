package main

import (
	"encoding/json"
	"os"
	"path"
	"testing"

	// The contracts import these; a plugin's request names every import.
	_ "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	_ "google.golang.org/protobuf/types/known/durationpb"
	_ "google.golang.org/protobuf/types/known/structpb"
	_ "google.golang.org/protobuf/types/known/timestamppb"
	"google.golang.org/protobuf/types/pluginpb"
)

func TestTheContractReachesTheDocument(t *testing.T) {
	t.Parallel()
	documents := generateAll(t)

	doc := documents["bullpen/tool/v1/principal_service.openapi.json"]
	call := doc.Paths["/bullpen.tool.v1.PrincipalService/VerifyToken"].Post
	require.Equal(t, "bullpen.tool.v1.PrincipalService.VerifyToken", call.OperationID)
	require.Contains(t, call.Description, "VerifyToken answers the claims")

	request := doc.Components.Schemas["bullpen.tool.v1.VerifyTokenRequest"]
	require.Equal(t, []string{"token"}, request.Required, "an empty token is refused")
	require.Equal(t, "The whole token.", request.Properties["token"].Description)
	require.EqualValues(t, 1, request.Properties["token"].MinLength)
	require.EqualValues(t, 256, request.Properties["token"].MaxLength)

	claims := doc.Components.Schemas["bullpen.tool.v1.PrincipalClaims"]
	require.Equal(t, "date-time", claims.Properties["issue_time"].Format)
	require.Equal(t, "#/components/schemas/bullpen.tool.v1.TurnClaims", claims.Properties["turn"].Ref)
	require.Equal(t, "array", claims.Properties["grants"].Type)

	filing := documents["bullpen/tracker/v1/tracker_service.openapi.json"].
		Components.Schemas["bullpen.tracker.v1.CreateWorkItemRequest"]
	require.Contains(t, filing.Properties["title"].Description, "At most 256 bytes.", "a rule with no keyword is said")
}

func TestEveryReferenceHasItsSchema(t *testing.T) {
	t.Parallel()
	for name, doc := range generateAll(t) {
		for _, item := range doc.Paths {
			requireResolved(t, name, doc, item.Post.RequestBody.Content["application/json"].Schema)
			for _, response := range item.Post.Responses {
				requireResolved(t, name, doc, response.Content["application/json"].Schema)
			}
		}
		for _, s := range doc.Components.Schemas {
			requireResolved(t, name, doc, s)
		}
	}
}

func requireResolved(t *testing.T, name string, doc document, s *schema) {
	t.Helper()
	if s == nil {
		return
	}
	if s.Ref != "" {
		require.Contains(t, doc.Components.Schemas, s.Ref[len(referenceTo("")):], name)
	}
	requireResolved(t, name, doc, s.Items)
	for _, property := range s.Properties {
		requireResolved(t, name, doc, property)
	}
}

// generateAll runs the plugin over the contracts as they stand.
func generateAll(t *testing.T) map[string]document {
	t.Helper()
	text, err := os.ReadFile("../../../gen/descriptors.binpb")
	require.NoError(t, err)
	var own descriptorpb.FileDescriptorSet
	require.NoError(t, proto.Unmarshal(text, &own))

	request := &pluginpb.CodeGeneratorRequest{Parameter: proto.String("paths=source_relative")}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		request.ProtoFile = append(request.ProtoFile, protodesc.ToFileDescriptorProto(file))
		return true
	})
	inDependencyOrder(request)
	for _, file := range own.GetFile() {
		// Where Go code would go; buf's managed mode sets it, the plain descriptors have none.
		file.Options = &descriptorpb.FileOptions{GoPackage: proto.String("example.com/" + path.Dir(file.GetName()))}
		request.ProtoFile = append(request.ProtoFile, file)
		request.FileToGenerate = append(request.FileToGenerate, file.GetName())
	}
	plugin, err := protogen.Options{}.New(request)
	require.NoError(t, err)
	require.NoError(t, generate(plugin))

	out := map[string]document{}
	for _, file := range plugin.Response().GetFile() {
		var doc document
		require.NoError(t, json.Unmarshal([]byte(file.GetContent()), &doc))
		out[file.GetName()] = doc
	}
	require.NotEmpty(t, out)
	return out
}

// inDependencyOrder sorts a request's files so that each comes after what it imports, as protoc sends them.
func inDependencyOrder(request *pluginpb.CodeGeneratorRequest) {
	byName := map[string]*descriptorpb.FileDescriptorProto{}
	for _, file := range request.GetProtoFile() {
		byName[file.GetName()] = file
	}
	var sorted []*descriptorpb.FileDescriptorProto
	var visit func(name string)
	visit = func(name string) {
		file, ok := byName[name]
		if !ok {
			return
		}
		delete(byName, name)
		for _, dependency := range file.GetDependency() {
			visit(dependency)
		}
		sorted = append(sorted, file)
	}
	for _, file := range request.GetProtoFile() {
		visit(file.GetName())
	}
	request.ProtoFile = sorted
}
