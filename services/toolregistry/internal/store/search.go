package store

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/call"
)

// A search for a text reads the texts: an index of trigrams would make every write of a call of 10 KB twenty times as dear
// (BenchmarkTrigrams), and the audit is written all day and searched now and then. So a page looks at a bounded number of calls
// and says where it stopped.
const (
	// window is how many calls one query looks at.
	window = 2000
	// maxWindows is how many of them one page looks at, and maxLooking for how long.
	maxWindows, maxLooking = 20, 2 * time.Second
)

// selectHits is called by SearchCalls with the calls of one window.
const selectHits = selectCalls + `
where audit_id = any($1) and (arguments ilike any($2) or result ilike any($2))` + newestFirst + ` limit $3`

// SearchCalls answers at most limit calls whose arguments or result hold the filter's text, newest first, and where the next page
// begins; nil on the last one. A page may end with less than it could hold, even with nothing, when it has looked at enough.
func (s *Store) SearchCalls(ctx context.Context, f Filter, after After, limit int) (page []*call.Record, next *After, err error) {
	var patterns []string
	for _, text := range spellings(f.Text) {
		patterns = append(patterns, "%"+strings.NewReplacer(`\`, `\\`, `%`, `\%`, `_`, `\_`).Replace(text)+"%")
	}
	begun, size := time.Now(), int64(0)
	for range maxWindows {
		ids, last, err := s.window(ctx, f, after)
		if err != nil {
			return nil, nil, err
		}
		found, more, err := s.readCalls(ctx, selectHits, []any{ids, patterns, limit - len(page) + 1}, limit-len(page))
		if err != nil {
			return nil, nil, err
		}
		page = append(page, found...)
		if more {
			last := Behind(page[len(page)-1])
			return page, &last, nil
		}
		if last == nil {
			return page, nil, nil
		}
		after, next = *last, last
		for _, r := range found {
			size += r.Size()
		}
		if len(page) == limit || size > maxPageBytes || time.Since(begun) > maxLooking {
			break
		}
	}
	return page, next, nil
}

// spellings answers how a text can stand in the JSON that is searched: as it is, with its signs escaped, and all in ASCII. Most texts
// have one.
func spellings(text string) []string {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(text) // a text always can be
	escaped := strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(b.String()), `"`), `"`)
	var ascii strings.Builder
	for _, r := range escaped {
		if r < utf8.RuneSelf {
			ascii.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&ascii, `\u%04x`, unit)
		}
	}
	return slices.Compact([]string{text, escaped, ascii.String()})
}

// window answers the next calls to look at, and the place of the last one when there may be more behind it.
func (s *Store) window(ctx context.Context, f Filter, after After) (ids []uuid.UUID, last *After, err error) {
	where, args := conditions(f, after)
	args = append(args, window)
	rows, err := s.pool.Query(ctx, fmt.Sprintf("select started_at, audit_id from calls%s%s limit $%d", where, newestFirst, len(args)), args...)
	if err != nil {
		return nil, nil, fmt.Errorf("search calls: %w", err)
	}
	places, err := pgx.CollectRows(rows, pgx.RowToStructByPos[After])
	if err != nil {
		return nil, nil, fmt.Errorf("search calls: %w", err)
	}
	for _, place := range places {
		ids = append(ids, place.ID)
	}
	if len(places) == window {
		last = &places[window-1]
	}
	return ids, last, nil
}

// GetCall answers one call, whole; not_found when there is none, or none any more.
func (s *Store) GetCall(ctx context.Context, id uuid.UUID) (*call.Record, error) {
	r, err := scanCall(s.pool.QueryRow(ctx, selectCalls+` where audit_id = $1`, id))
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, fault.New(fault.NotFound, "The audit has no call %s. It may be older than calls are kept.", id).WithField("audit_id")
	}
	if err != nil {
		return nil, fmt.Errorf("get call: %w", err)
	}
	return r, nil
}
