package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

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
					fmt.Fprintln(a.Out, mistake(args[0], p))
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

// mistake is a line that says what is wrong and where.
func mistake(file string, p *companyv1.Problem) string {
	at := fmt.Sprintf("%s:%d:%d", file, p.GetLine(), p.GetColumn())
	if p.GetPath() != "" {
		at += ": " + p.GetPath()
	}
	return at + ": " + p.GetMessage()
}

// refuseMistakes fails with the mistakes of a document, by line.
func refuseMistakes(path string) error {
	text, err := readFile(path)
	if err != nil {
		return err
	}
	problems := company.Check(string(text))
	if len(problems) == 0 {
		return nil
	}
	lines := make([]string, 0, len(problems))
	for _, p := range problems {
		lines = append(lines, mistake(path, p))
	}
	return errors.New("the company document is refused:\n" + strings.Join(lines, "\n"))
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
