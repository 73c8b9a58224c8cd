package company

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/bullpenhq/bullpen/services/company/internal/document"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
)

// fromFile is the summary of a revision that came from a file, and fileAuthor who stored it.
const (
	fromFile   = "applied from file at start"
	fileAuthor = "service:" + name
)

// applyFile makes a file's document active unless it is already. The file wins over whatever is active: whoever starts the
// service with one says by that where the document is kept.
func (s *Service) applyFile(ctx context.Context, path string, now time.Time) error {
	text, err := readFile(path)
	if err != nil {
		return fmt.Errorf("read the company document: %w", err)
	}
	if _, problems := document.Parse(text); len(problems) > 0 {
		lines := make([]string, 0, len(problems))
		for _, p := range problems {
			lines = append(lines, path+":"+p.String())
			s.log.Error("company document refused", "at", fmt.Sprintf("%s:%d", path, p.Line), "path", p.Path, "kind", p.Kind, "problem", p.Message)
		}
		return errors.New("the company document is refused:\n" + strings.Join(lines, "\n"))
	}
	var (
		r         revision.Revision
		unchanged bool
	)
	err = s.store.InTx(ctx, func(tx *store.Tx) error {
		r, unchanged, err = tx.Put(ctx, revision.Put{Document: text, By: fileAuthor, Summary: fromFile, At: now})
		return err
	})
	if err != nil {
		return fmt.Errorf("apply the company document: %w", err)
	}
	s.log.Info("company document applied", "file", path, "revision_id", r.ID, "epoch", r.Epoch, "unchanged", unchanged)
	return nil
}

// readFile reads a document, and of one that is too large only enough to say so.
func readFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, document.MaxBytes+1))
	return string(text), err
}
