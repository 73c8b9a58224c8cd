package rpc_test

import (
	"context"
	"strings"
	"testing"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"connectrpc.com/connect/v2"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// itemProto is a tool request with a rule of each sort.
const itemProto = `
name: "bullpen/test/v1/item.proto" package: "bullpen.test.v1" syntax: "proto3" dependency: "buf/validate/validate.proto"
message_type {
  name: "Item"
  field { name: "title" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "title"
    options { [buf.validate.field] { string { min_len: 1 max_len: 20 } } } }
  field { name: "waiting_on" number: 2 type: TYPE_MESSAGE type_name: ".bullpen.test.v1.Change" label: LABEL_OPTIONAL json_name: "waitingOn" }
  field { name: "steps" number: 3 type: TYPE_MESSAGE type_name: ".bullpen.test.v1.Change" label: LABEL_REPEATED json_name: "steps" }
  field { name: "from" number: 4 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "from" }
  field { name: "ask" number: 5 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 json_name: "ask" }
  field { name: "tell" number: 6 type: TYPE_STRING label: LABEL_OPTIONAL oneof_index: 0 json_name: "tell" }
  field { name: "order" number: 7 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "order"
    options { [buf.validate.field] { string { in: "" in: "oldest" in: "newest" } } } }
  oneof_decl { name: "gesture" options { [buf.validate.oneof] { required: true } } }
  options { [buf.validate.message] { cel { id: "from_title" message: "from may only be given together with title"
    expression: "this.from == '' || this.title != ''" } } }
}
message_type {
  name: "Change"
  field { name: "add" number: 1 type: TYPE_STRING label: LABEL_REPEATED json_name: "add"
    options { [buf.validate.field] { repeated { items { string { min_len: 2 } } } } } }
  field { name: "due" number: 2 type: TYPE_STRING label: LABEL_OPTIONAL json_name: "due"
    options { [buf.validate.field] { cel { id: "due" message: "due must be a day such as 2026-11-30" expression: "this == '' || this.matches('^[0-9-]{10}$')" } } } }
  field { name: "slugs" number: 3 type: TYPE_STRING label: LABEL_REPEATED json_name: "slugs"
    options { [buf.validate.field] { repeated { unique: true items { string { pattern: "^[a-z]+$" } } } } } }
}`

func itemDescriptor(t *testing.T) protoreflect.MessageDescriptor {
	t.Helper()
	_ = validatepb.File_buf_validate_validate_proto
	var file descriptorpb.FileDescriptorProto
	require.NoError(t, prototext.Unmarshal([]byte(itemProto), &file))
	fd, err := protodesc.NewFile(&file, protoregistry.GlobalFiles)
	require.NoError(t, err)
	return fd.Messages().ByName("Item")
}

func itemSpec() connect.Spec {
	return connect.Spec{StreamType: connect.StreamTypeUnary, Procedure: "/bullpen.test.v1.ItemService/CreateItem"}
}

// takingItems serves a method that takes items and answers nothing.
func takingItems(d protoreflect.MessageDescriptor) func(*connect.Server) {
	return func(s *connect.Server) {
		s.Register(connect.Method{Spec: itemSpec(), Handler: func(_ context.Context, _ connect.Spec, stream connect.ServerStream) error {
			if err := stream.Receive(dynamicpb.NewMessage(d)); err != nil {
				return err
			}
			return stream.Send(&toolv1.VerifyTokenResponse{})
		}})
	}
}

func TestRequestOutsideItsRulesIsRefusedInSentences(t *testing.T) {
	t.Parallel()
	d := itemDescriptor(t)
	for name, c := range map[string]struct{ request, field, says string }{
		"empty text":         {`{"ask":"x"}`, "title", "`title` must not be empty"},
		"not of the set":     {`{"ask":"x","title":"t","order":"best"}`, "order", "`order` must be one of `oldest`, `newest`"},
		"inside a list":      {`{"ask":"x","title":"t","waiting_on":{"add":["ok","x"]}}`, "waiting_on.add[1]", "`waiting_on.add[1]` must be at least 2 characters"},
		"inside a list of":   {`{"ask":"x","title":"t","steps":[{},{"add":["x"]}]}`, "steps[1].add[0]", "`steps[1].add[0]` must be at least 2 characters"},
		"a contract's words": {`{"ask":"x","title":"t","waiting_on":{"due":"soon"}}`, "waiting_on.due", "due must be a day such as 2026-11-30"},
		"nothing at all":     {`{"ask":"x","title":"t","waiting_on":{"slugs":[""]}}`, "waiting_on.slugs[0]", "`waiting_on.slugs[0]` must not be empty"},
		"another form":       {`{"ask":"x","title":"t","waiting_on":{"slugs":["A"]}}`, "waiting_on.slugs[0]", "`waiting_on.slugs[0]` must have the form `^[a-z]+$`"},
		"twice":              {`{"ask":"x","title":"t","waiting_on":{"slugs":["a","a"]}}`, "waiting_on.slugs", "`waiting_on.slugs` must name nothing twice"},
		"neither of two":     {`{"title":"t"}`, "", "exactly one field is required in oneof"},
		"several at once":    {`{"ask":"x","from":"Bo"}`, "title", "from may only be given together with title; `title` must not be empty"},
		"more than five": {
			`{"ask":"x","title":"t","waiting_on":{"add":["1","2","3","4","5","6","7"]}}`, "waiting_on.add[0]", "; and 2 more",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothTransports(t, rpc.ServerOptions{}, takingItems(d), func(t *testing.T, b *bundle) {
				request := dynamicpb.NewMessage(d)
				require.NoError(t, protojson.Unmarshal([]byte(c.request), request))
				err := b.client("turn").CallUnary(t.Context(), itemSpec(), request, &toolv1.VerifyTokenResponse{})
				require.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err))
				f := rpc.FromError(err)
				require.Equal(t, fault.Invalid, f.Class)
				require.Contains(t, f.Message, c.says)
				require.Equal(t, c.field, f.Field)
			})
		})
	}
}

func TestTextThatNoDatabaseKeepsIsRefusedByName(t *testing.T) {
	t.Parallel()
	d := itemDescriptor(t)
	for name, c := range map[string]struct{ request, field string }{
		"a text":              {`{"ask":"x","title":"a\u0000"}`, "title"},
		"one of two":          {`{"ask":"\u0000","title":"t"}`, "ask"},
		"in a message":        {`{"ask":"x","title":"t","waiting_on":{"due":"\u0000"}}`, "waiting_on.due"},
		"in a list":           {`{"ask":"x","title":"t","waiting_on":{"add":["ok","a\u0000"]}}`, "waiting_on.add[1]"},
		"in a list of others": {`{"ask":"x","title":"t","steps":[{},{"add":["a\u0000"]}]}`, "steps[1].add[0]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onBothTransports(t, rpc.ServerOptions{}, takingItems(d), func(t *testing.T, b *bundle) {
				request := dynamicpb.NewMessage(d)
				require.NoError(t, protojson.Unmarshal([]byte(c.request), request))
				f := rpc.FromError(b.client("turn").CallUnary(t.Context(), itemSpec(), request, &toolv1.VerifyTokenResponse{}))
				require.Equal(t, fault.Invalid, f.Class)
				require.Equal(t, c.field, f.Field)
				require.Contains(t, f.Message, "NUL")
			})
		})
	}
	t.Run("a map", func(t *testing.T) {
		t.Parallel()
		require.ErrorContains(t, rpc.Validate(&toolv1.Refusal{Facts: map[string]string{"k": "\x00"}}), "`facts`")
		require.ErrorContains(t, rpc.Validate(&toolv1.Refusal{Facts: map[string]string{"\x00": "v"}}), "`facts`")
	})
	t.Run("bytes that are no text, which reach a handler in process alone", func(t *testing.T) {
		t.Parallel()
		require.ErrorContains(t, rpc.Validate(&toolv1.Refusal{Message: "a\xff"}), "`message` must be UTF-8 text")
	})
}

func TestRequestWithinItsRulesPasses(t *testing.T) {
	t.Parallel()
	d := itemDescriptor(t)
	onBothTransports(t, rpc.ServerOptions{}, takingItems(d), func(t *testing.T, b *bundle) {
		request := dynamicpb.NewMessage(d)
		require.NoError(t, protojson.Unmarshal([]byte(`{"title":"t","ask":"x"}`), request))
		require.NoError(t, b.client("turn").CallUnary(t.Context(), itemSpec(), request, &toolv1.VerifyTokenResponse{}))
	})
}

func TestRequestLargerThanTheCapIsRefused(t *testing.T) {
	t.Parallel()
	onBothTransports(t, rpc.ServerOptions{}, serving(whoami), func(t *testing.T, b *bundle) {
		request := &toolv1.VerifyTokenRequest{Token: strings.Repeat("x", rpc.MaxRequestBytes)}
		err := b.client("turn").CallUnary(t.Context(), writeSpec(), request, &toolv1.VerifyTokenResponse{})
		f := rpc.FromError(err)
		require.Equal(t, fault.Invalid, f.Class)
		require.Equal(t, "REQUEST_TOO_LARGE", f.Reason)
		require.Contains(t, f.Message, "8 MiB")
		require.Empty(t, f.Outcome)
	})
}

func TestAnswerLargerThanTheCapIsRefusedAndNotCut(t *testing.T) {
	t.Parallel()
	long := func(context.Context, *toolv1.VerifyTokenRequest) (*toolv1.VerifyTokenResponse, error) {
		return &toolv1.VerifyTokenResponse{Principal: &rpc.Principal{Id: strings.Repeat("x", rpc.MaxResponseBytes)}}, nil
	}
	onBothTransports(t, rpc.ServerOptions{}, serving(long), func(t *testing.T, b *bundle) {
		f := rpc.FromError(callWrite(t.Context(), b.client("turn")))
		require.Equal(t, "RESPONSE_TOO_LARGE", f.Reason)
		require.Contains(t, f.Message, "32 MiB")
		require.Equal(t, fault.OutcomeUnknown, f.Outcome, "the write was done before its answer was found too long")
	})
}

func TestWarmingCompilesWhatIsRegistered(t *testing.T) {
	t.Parallel()
	b := newBundle(t, rpc.ServerOptions{}, serving(whoami))
	require.NoError(t, rpc.Warm(b.server))
}
