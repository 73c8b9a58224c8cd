// Command protoc-gen-openapi is a protoc plugin that describes each service as an OpenAPI 3.1 document, for those who
// call it with plain HTTP and JSON.
//
// Every unary RPC is a POST with the request message as its body. Names, limits and descriptions are those of the
// contract: JSON names are the proto names, as our servers write them, validation rules become JSON Schema keywords,
// comments become descriptions. Streaming RPCs have no such form and are left out.
package main

import (
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	protogen.Options{}.Run(generate)
}

// generate writes one document for each file that declares a service.
func generate(plugin *protogen.Plugin) error {
	plugin.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL)
	for _, file := range plugin.Files {
		if !file.Generate || len(file.Services) == 0 {
			continue
		}
		text, err := documentOf(file).render()
		if err != nil {
			return err
		}
		out := plugin.NewGeneratedFile(file.GeneratedFilenamePrefix+".openapi.json", "")
		if _, err := out.Write(text); err != nil {
			return err
		}
	}
	return nil
}
