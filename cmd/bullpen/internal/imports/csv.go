package imports

import (
	"bufio"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"unicode/utf8"
)

// row is a line of a CSV file by its columns' names, which may repeat.
type row struct {
	header  []string
	columns map[string][]int
	values  []string
	number  int
}

// get answers the first column of a name that holds something; names are in any case.
func (w row) get(names ...string) string {
	for _, name := range names {
		if values := w.all(name); len(values) > 0 {
			return values[0]
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

// rest answers the columns that hold something and that none of the readers knows, in the order of the file.
func (w row) rest(known func(name string) bool) []fact {
	var out []fact
	seen := map[string]bool{}
	for _, name := range w.header {
		key := strings.ToLower(name)
		if seen[key] || known(key) {
			continue
		}
		seen[key] = true
		if values := w.all(key); len(values) > 0 {
			between := ", "
			if strings.Contains(strings.Join(values, ""), "\n") {
				between = "\n"
			}
			out = append(out, fact{name, strings.Join(values, between)})
		}
	}
	return out
}

// blank reports whether a line holds nothing: spreadsheets leave such lines at the end, and they are no records.
func (w row) blank() bool {
	return !slices.ContainsFunc(w.values, func(value string) bool { return strings.TrimSpace(value) != "" })
}

// inUTF8 reports whether the line is text as it is expected; in another encoding some of it cannot be read.
func (w row) inUTF8() bool {
	return !slices.ContainsFunc(w.values, func(value string) bool { return !utf8.ValidString(value) })
}

// rows answers the lines under a CSV file's header. need are columns without which it is another kind of file.
func (o Options) rows(r *bufio.Reader, need ...string) iter.Seq2[row, error] {
	return func(yield func(row, error) bool) {
		reader := csv.NewReader(r)
		reader.Comma = delimiter(r)
		reader.FieldsPerRecord = -1
		reader.LazyQuotes = true
		header, err := reader.Read()
		if err != nil {
			yield(row{}, fmt.Errorf("the file has no header: %w", err))
			return
		}
		columns := map[string][]int{}
		for at, name := range header {
			header[at] = strings.TrimSpace(name)
			if known, ok := o.Columns[strings.ToLower(header[at])]; ok {
				header[at] = known
			}
			columns[strings.ToLower(header[at])] = append(columns[strings.ToLower(header[at])], at)
		}
		for _, name := range need {
			if columns[strings.ToLower(name)] == nil {
				yield(row{}, fmt.Errorf("the file has no column %q: it has %s; --column 'THEIRS=%s' says which it is where columns have names of another language",
					name, strings.Join(header[:min(len(header), 12)], ", "), name))
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
			w := row{header: header, columns: columns, values: values, number: number}
			if !w.blank() && !yield(w, nil) {
				return
			}
		}
	}
}

// delimiter answers what parts the columns of the header: a comma, or what spreadsheets of other languages write.
func delimiter(r *bufio.Reader) rune {
	head, _ := r.Peek(4 << 10) // a shorter file is all there is
	line, _, _ := strings.Cut(string(head), "\n")
	best := ','
	for _, other := range []rune{';', '\t'} {
		if strings.Count(line, string(other)) > strings.Count(line, string(best)) {
			best = other
		}
	}
	return best
}
