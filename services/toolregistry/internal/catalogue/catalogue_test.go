package catalogue_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/bullpenhq/bullpen/services/toolregistry/internal/catalogue"
)

func load(t testing.TB) *catalogue.Catalogue {
	t.Helper()
	c, err := catalogue.Load()
	require.NoError(t, err)
	return c
}

func tool(t testing.TB, name string) *catalogue.Tool {
	t.Helper()
	found, ok := load(t).Lookup(name)
	require.True(t, ok, "no tool %s", name)
	return found
}

func TestEveryToolKeepsTheConventions(t *testing.T) {
	t.Parallel()
	tools := load(t).Tools()
	require.NotEmpty(t, tools)
	for _, tool := range tools {
		t.Run(tool.Name, func(t *testing.T) {
			t.Parallel()
			require.NotEmpty(t, tool.Description, "the RPC has no comment")
			require.NotEmpty(t, tool.Audiences)
			require.NotNil(t, tool.ReadOnly, "say whether it reads")
			require.NotNil(t, tool.OpenWorld, "say whether it reaches outside")
			require.Equal(t, tool.Delivers != "", tool.Delivers != "" && tool.Writes(), "a read delivers nowhere")
			var schema map[string]any
			require.NoError(t, json.Unmarshal(tool.Schema, &schema))
			for _, combinator := range []string{"oneOf", "anyOf", "allOf", "not", "enum", "const", "$ref"} {
				require.NotContains(t, schema, combinator)
			}
			require.False(t, bytes.Contains(tool.Schema, []byte(`"not":{"enum"`)), "a rule not_in has no schema that providers take")
			compiles(t, tool.Schema)
			fieldsKeepTheConventions(t, tool.Input.Descriptor(), schema)
		})
	}
}

func compiles(t *testing.T, text []byte) {
	t.Helper()
	document, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	require.NoError(t, err)
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(jsonschema.Draft2020)
	require.NoError(t, compiler.AddResource("tool.json", document))
	_, err = compiler.Compile("tool.json")
	require.NoError(t, err)
}

// fieldsKeepTheConventions needs no list of forbidden types: the converter refuses them, and Load has passed.
func fieldsKeepTheConventions(t *testing.T, md protoreflect.MessageDescriptor, schema map[string]any) {
	t.Helper()
	properties, _ := schema["properties"].(map[string]any)
	for i := range md.Fields().Len() {
		field := md.Fields().Get(i)
		property, ok := properties[string(field.Name())].(map[string]any)
		require.True(t, ok, "%s is not in the schema", field.FullName())
		require.NotEmpty(t, property["description"], "%s has no comment", field.FullName())
		if field.Kind() == protoreflect.StringKind && !field.IsMap() {
			require.True(t, bounded(field), "the string %s has no largest length", field.FullName())
		}
		if field.Kind() != protoreflect.MessageKind || field.IsMap() || strings.HasPrefix(string(field.Message().FullName()), "google.protobuf.") {
			continue
		}
		if items, ok := property["items"].(map[string]any); ok {
			property = items
		}
		fieldsKeepTheConventions(t, field.Message(), property)
	}
}

func bounded(field protoreflect.FieldDescriptor) bool {
	rules, _ := proto.GetExtension(field.Options(), validatepb.E_Field).(*validatepb.FieldRules)
	text := rules.GetString()
	if field.IsList() {
		text = rules.GetRepeated().GetItems().GetString()
	}
	return text.GetMaxLen() > 0 || text.GetMaxBytes() > 0 || text.GetLen() > 0 || len(text.GetIn()) > 0 || text.GetConst() != ""
}

func TestCommentLimitAndClosedSetReachTheSchema(t *testing.T) {
	t.Parallel()
	var schema struct {
		Required   []string
		Properties map[string]struct {
			Type, Description string
			MinLength         *int
			MaxLength         *int
			Minimum, Maximum  *int
			Enum              []string
			Default           any
		}
		AdditionalProperties *bool
	}
	created := tool(t, "create_work_item")
	require.NoError(t, json.Unmarshal(created.Schema, &schema))
	require.Contains(t, created.Description, "Files a work item", "the RPC's comment is the tool's description")
	require.Equal(t, []string{"title"}, schema.Required)
	require.False(t, *schema.AdditionalProperties)

	title := schema.Properties["title"]
	require.Equal(t, "string", title.Type)
	require.Contains(t, title.Description, "What is to be done, in a line.")
	require.Contains(t, title.Description, "At most 256 bytes.")
	require.Equal(t, 256, *title.MaxLength)
	require.Equal(t, 1, *title.MinLength)

	priority := schema.Properties["priority"]
	require.Contains(t, priority.Enum, "urgent")
	require.Contains(t, priority.Enum, "", "an empty string is the default")
	require.Equal(t, "none", priority.Default)

	minutes := schema.Properties["estimate_minutes"]
	require.Equal(t, "integer", minutes.Type)
	require.Equal(t, 1, *minutes.Minimum)
	require.Equal(t, 525600, *minutes.Maximum)

	require.Contains(t, schema.Properties["due"].Description, "Due must be a day such as 2026-03-01 or a time", "a rule's own words are read too")
}

func TestArgumentsKeepTheOrderOfTheContract(t *testing.T) {
	t.Parallel()
	text := string(tool(t, "create_work_item").Schema)
	require.Less(t, strings.Index(text, `"title"`), strings.Index(text, `"body"`))
	require.Less(t, strings.Index(text, `"body"`), strings.Index(text, `"assignee"`))
}

func TestARuleAcrossFieldsIsReadInTheDescription(t *testing.T) {
	t.Parallel()
	require.Contains(t, string(tool(t, "submit_work").Schema), "Evidence is required when outcome is blocked.")
}
