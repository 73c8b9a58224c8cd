package main

import (
	"bytes"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/descriptorpb"
)

// document is an OpenAPI document, as far as Connect's unary calls need one.
type document struct {
	OpenAPI    string              `json:"openapi"`
	Info       info                `json:"info"`
	Paths      map[string]pathItem `json:"paths"`
	Components components          `json:"components"`
	Security   []map[string][]any  `json:"security"`
}

type info struct {
	Title       string `json:"title"`
	Description string `json:"description,omitempty"`
	Version     string `json:"version"`
}

type pathItem struct {
	Post operation `json:"post"`
}

type operation struct {
	OperationID string             `json:"operationId"`
	Tags        []string           `json:"tags"`
	Description string             `json:"description,omitempty"`
	Deprecated  bool               `json:"deprecated,omitempty"`
	RequestBody content            `json:"requestBody"`
	Responses   map[string]content `json:"responses"`
}

type content struct {
	Description string               `json:"description,omitempty"`
	Required    bool                 `json:"required,omitempty"`
	Content     map[string]mediaType `json:"content"`
}

type mediaType struct {
	Schema *schema `json:"schema"`
}

type components struct {
	Schemas         map[string]*schema        `json:"schemas"`
	SecuritySchemes map[string]securityScheme `json:"securitySchemes"`
}

type securityScheme struct {
	Type        string `json:"type"`
	Scheme      string `json:"scheme"`
	Description string `json:"description"`
}

// errorSchema is the body of every answer that is not 200: Connect's error.
const errorSchema = "connect.Error"

func documentOf(file *protogen.File) document {
	schemas := schemas{errorSchema: connectError()}
	doc := document{
		OpenAPI: "3.1.0",
		Info:    info{Title: string(file.Desc.Package()), Version: lastSegment(string(file.Desc.Package()))},
		Paths:   map[string]pathItem{},
		Components: components{
			Schemas: schemas,
			SecuritySchemes: map[string]securityScheme{
				"token": {Type: "http", Scheme: "bearer", Description: "An API token, made with `bullpen token create`."},
			},
		},
		Security: []map[string][]any{{"token": {}}},
	}
	var about []string
	for _, service := range file.Services {
		about = append(about, comment(service.Comments))
		for _, method := range service.Methods {
			if method.Desc.IsStreamingClient() || method.Desc.IsStreamingServer() {
				continue
			}
			path := "/" + string(service.Desc.FullName()) + "/" + string(method.Desc.Name())
			doc.Paths[path] = pathItem{Post: operationOf(service, method, schemas)}
		}
	}
	doc.Info.Description = strings.Join(about, "\n\n")
	return doc
}

func operationOf(service *protogen.Service, method *protogen.Method, schemas schemas) operation {
	options, _ := method.Desc.Options().(*descriptorpb.MethodOptions)
	return operation{
		OperationID: string(method.Desc.FullName()),
		Tags:        []string{string(service.Desc.Name())},
		Description: comment(method.Comments),
		Deprecated:  options.GetDeprecated(),
		RequestBody: content{Required: true, Content: asJSON(schemas.reference(method.Input))},
		Responses: map[string]content{
			"200":     {Description: "Done.", Content: asJSON(schemas.reference(method.Output))},
			"default": {Description: "Refused or failed.", Content: asJSON(&schema{Ref: referenceTo(errorSchema)})},
		},
	}
}

func asJSON(s *schema) map[string]mediaType {
	return map[string]mediaType{"application/json": {Schema: s}}
}

func connectError() *schema {
	return &schema{
		Type:        "object",
		Description: "What a refused or failed call answers. A refusal carries a `bullpen.tool.v1.Refusal` among its details.",
		Properties: map[string]*schema{
			"code":    {Type: "string", Description: "Connect's code, such as `invalid_argument`."},
			"message": {Type: "string", Description: "A sentence for people."},
			"details": {Type: "array", Description: "More, for programs.", Items: &schema{
				Type: "object",
				Properties: map[string]*schema{
					"type":  {Type: "string", Description: "The full name of a message."},
					"value": {Type: "string", Description: "That message in its wire form, base64 without padding."},
					"debug": {Description: "The same as JSON, for reading only."},
				},
			}},
		},
	}
}

// render is deterministic: keys are sorted wherever the contract has no order.
func (d document) render() ([]byte, error) {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(d)
	return out.Bytes(), err
}

// comment joins the lines of a leading comment into paragraphs; blank lines stay.
func comment(set protogen.CommentSet) string {
	var paragraphs []string
	var lines []string
	flush := func() {
		if len(lines) > 0 {
			paragraphs = append(paragraphs, strings.Join(lines, " "))
			lines = nil
		}
	}
	for line := range strings.Lines(string(set.Leading)) {
		if line = strings.TrimSpace(line); line == "" {
			flush()
			continue
		}
		lines = append(lines, line)
	}
	flush()
	return strings.Join(paragraphs, "\n\n")
}

func lastSegment(name string) string {
	return name[strings.LastIndexByte(name, '.')+1:]
}
