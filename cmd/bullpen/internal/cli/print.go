package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"
)

// printMessage prints a message as indented JSON with the names of the contract.
func (a *app) printMessage(m proto.Message) error {
	raw, err := protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return err
	}
	var out bytes.Buffer // protojson's own spacing differs from build to build
	if err := json.Indent(&out, raw, "", "  "); err != nil {
		return err
	}
	_, err = fmt.Fprintln(a.Out, out.String())
	return err
}

// printJSON prints a value of our own.
func (a *app) printJSON(v any) error {
	encoder := json.NewEncoder(a.Out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	return encoder.Encode(v)
}

// table prints rows under a head, aligned.
func table(w io.Writer, head []string, rows [][]string) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{head}, rows...) {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(t, "\t")
			}
			fmt.Fprint(t, cell)
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// indented sets the lines that follow the first one in, so that nobody takes them for lines of ours.
func indented(text string) string { return strings.ReplaceAll(text, "\n", "\n    ") }

// count says how many there are.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// moment is a time as a person near the installation reads it.
func moment(t *timestamppb.Timestamp) string {
	if t == nil {
		return ""
	}
	return t.AsTime().Local().Format(time.DateTime)
}
