// Command mkvalidate prints the source of buf/validate/validate.proto from the descriptor that the pinned Go
// module carries, so that contracts compile offline against exactly the rules the runtime enforces.
package main

import (
	"fmt"
	"os"

	validatepb "buf.build/gen/go/bufbuild/protovalidate/protocolbuffers/go/buf/validate"
	"github.com/jhump/protoreflect/v2/protoprint"
)

func main() {
	printer := &protoprint.Printer{}
	if err := printer.PrintProtoFile(validatepb.File_buf_validate_validate_proto, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mkvalidate:", err)
		os.Exit(1)
	}
}
