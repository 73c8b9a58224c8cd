package api

import (
	"strconv"
	"strings"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

// problemJSON is a problem as a form shows it beside the field it is about.
type problemJSON struct {
	Path string `json:"path"`
	// Segments are the path's keys and places in lists.
	Segments []any  `json:"segments"`
	Kind     string `json:"kind"`
	Message  string `json:"message"`
	Seat     string `json:"seat,omitempty"`
	Unit     string `json:"unit,omitempty"`
	Line     int32  `json:"line"`
	Column   int32  `json:"column"`
}

func problemsToJSON(problems []*companyv1.Problem) []problemJSON {
	out := []problemJSON{}
	for _, p := range problems {
		out = append(out, problemJSON{p.GetPath(), segments(p.GetPath()), p.GetKind(), p.GetMessage(), p.GetSeat(), p.GetUnit(), p.GetLine(), p.GetColumn()})
	}
	return out
}

// segments takes a path apart: `units[0].roles[1].name` is units, 0, roles, 1, name.
func segments(path string) []any {
	out := []any{}
	for _, part := range strings.Split(path, ".") {
		key, rest, _ := strings.Cut(part, "[")
		if key != "" {
			out = append(out, key)
		}
		for _, place := range strings.Split(rest, "[") {
			if n, err := strconv.Atoi(strings.TrimSuffix(place, "]")); err == nil {
				out = append(out, n)
			}
		}
	}
	return out
}
