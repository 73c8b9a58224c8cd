package imports

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
)

// row is a line of a CSV file by its columns' names, which may repeat.
type row struct {
	columns map[string][]int
	values  []string
	number  int
}

// get answers the first column of a name that holds something; names are in any case.
func (w row) get(names ...string) string {
	for _, name := range names {
		for _, at := range w.columns[strings.ToLower(name)] {
			if at < len(w.values) && strings.TrimSpace(w.values[at]) != "" {
				return strings.TrimSpace(w.values[at])
			}
		}
	}
	return ""
}

// all answers what the columns of a name hold, in order.
func (w row) all(name string) []string {
	var out []string
	for _, at := range w.columns[strings.ToLower(name)] {
		if at < len(w.values) && strings.TrimSpace(w.values[at]) != "" {
			out = append(out, strings.TrimSpace(w.values[at]))
		}
	}
	return out
}

// rows answers the lines under a CSV file's header. need are columns without which it is another kind of file.
func rows(r io.Reader, need ...string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		reader := csv.NewReader(r)
		reader.FieldsPerRecord = -1
		reader.LazyQuotes = true
		header, err := reader.Read()
		if err != nil {
			yield(row{}, fmt.Errorf("the file has no header: %w", err))
			return
		}
		if len(header) == 1 && strings.Contains(header[0], ";") {
			yield(row{}, fmt.Errorf("the columns are parted by ';': export the file again with commas"))
			return
		}
		columns := map[string][]int{}
		for at, name := range header {
			name = strings.ToLower(strings.TrimSpace(name))
			columns[name] = append(columns[name], at)
		}
		for _, name := range need {
			if columns[strings.ToLower(name)] == nil {
				yield(row{}, fmt.Errorf("the file has no column %q: it has %s", name, strings.Join(header[:min(len(header), 12)], ", ")))
				return
			}
		}
		for number := 2; ; number++ {
			values, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				yield(row{}, err)
				return
			}
			if !yield(row{columns: columns, values: values, number: number}, nil) {
				return
			}
		}
	}
}
