package catalogue

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

// comments holds the leading comment of every RPC and field by its full name, in paragraphs.
type comments map[protoreflect.FullName]string

// Field numbers by which source locations name what stands where (google/protobuf/descriptor.proto).
const (
	fileMessages, fileServices      = 4, 6
	serviceMethods                  = 2
	messageFields, messageNested    = 2, 3
	methodDepth, maxLocationNesting = 4, 32
)

// readComments reads the image that gen embeds. Its descriptors are not built: the locations say enough.
func readComments(image []byte) (comments, error) {
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(image, &set); err != nil {
		return nil, fmt.Errorf("read the embedded descriptors: %w", err)
	}
	all := comments{}
	for _, file := range set.GetFile() {
		for _, location := range file.GetSourceCodeInfo().GetLocation() {
			if location.LeadingComments == nil {
				continue
			}
			if name, ok := locate(file, location.GetPath()); ok {
				all[name] = paragraphs(location.GetLeadingComments())
			}
		}
	}
	return all, nil
}

// locate answers the full name of the RPC or field that a path leads to.
func locate(file *descriptorpb.FileDescriptorProto, path []int32) (protoreflect.FullName, bool) {
	if len(path) < methodDepth || len(path) > maxLocationNesting {
		return "", false
	}
	scope := protoreflect.FullName(file.GetPackage())
	switch path[0] {
	case fileServices:
		if len(path) != methodDepth || path[2] != serviceMethods {
			return "", false
		}
		service := file.GetService()[path[1]]
		return scope.Append(protoreflect.Name(service.GetName())).Append(protoreflect.Name(service.GetMethod()[path[3]].GetName())), true
	case fileMessages:
		return locateField(scope, file.GetMessageType()[path[1]], path[2:])
	default:
		return "", false
	}
}

func locateField(scope protoreflect.FullName, message *descriptorpb.DescriptorProto, path []int32) (protoreflect.FullName, bool) {
	scope = scope.Append(protoreflect.Name(message.GetName()))
	switch {
	case len(path) == 2 && path[0] == messageFields:
		return scope.Append(protoreflect.Name(message.GetField()[path[1]].GetName())), true
	case len(path) > 2 && path[0] == messageNested:
		return locateField(scope, message.GetNestedType()[path[1]], path[2:])
	default:
		return "", false
	}
}

// paragraphs joins the lines of a comment, which are broken where the source is wide enough, and keeps what its author broke
// on purpose: empty lines and lists.
func paragraphs(comment string) string {
	var b strings.Builder
	broken := true
	for line := range strings.Lines(strings.TrimSpace(comment)) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			if !broken {
				b.WriteString("\n")
			}
			b.WriteString("\n")
			broken = true
			continue
		case strings.HasPrefix(line, "- ") && !broken:
			b.WriteString("\n")
		case !broken:
			b.WriteString(" ")
		}
		b.WriteString(line)
		broken = false
	}
	return b.String()
}
