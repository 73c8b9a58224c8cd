package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/services/company"
)

// maxDocumentBytes is a little more than the largest document the service takes, so that one too large is refused by the
// checker's own sentence.
const maxDocumentBytes = 5 << 20

func (a *app) check() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say everything that is wrong with a company document, by line",
		Args:  cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			text, err := readFile(args[0])
			if err != nil {
				return err
			}
			problems := company.Check(string(text))
			if a.json {
				if err := a.printMessage(&companyv1.CheckCompanyResponse{Problems: problems}); err != nil {
					return err
				}
			} else {
				for _, p := range problems {
					at := fmt.Sprintf("%s:%d:%d", args[0], p.GetLine(), p.GetColumn())
					if p.GetPath() != "" {
						at += ": " + p.GetPath()
					}
					fmt.Fprintf(a.Out, "%s: %s\n", at, p.GetMessage())
				}
			}
			switch {
			case len(problems) > 0:
				return fmt.Errorf("%s has %s", args[0], count(len(problems), "problem"))
			case !a.json:
				fmt.Fprintf(a.Out, "%s is fine.\n", args[0])
			}
			return nil
		},
	}
}

// readFile reads a document whole, but no more of a file that cannot be one.
func readFile(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, maxDocumentBytes))
}
