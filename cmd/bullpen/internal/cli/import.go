package cli

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/imports"
	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
)

// A part holds as many items as one call takes, by number and by size.
const (
	partItems = 100
	partBytes = 4 << 20
)

// importing is one run of the command.
type importing struct {
	project, source, zone  string
	dryRun, dayFirst       bool
	users, statuses, kinds []string
	priorities, columns    []string
}

// imported says what became of a file. The first four add up to Read.
type imported struct {
	Read     int               `json:"read"`
	Filed    int               `json:"filed"`
	There    int               `json:"there"`
	Refused  int               `json:"refused"`
	DryRun   bool              `json:"dry_run"`
	Comments int               `json:"comments"`
	Refusals []importRefusal   `json:"refusals"`
	Warnings map[string]int    `json:"warnings"`
	Examples map[string]string `json:"warning_examples"`
}

type importRefusal struct {
	Place   string `json:"place"`
	Problem string `json:"problem"`
}

func (a *app) importItems() *cobra.Command {
	var i importing
	cmd := &cobra.Command{
		Use:   "import github|jira|linear FILE",
		Short: "Bring the items of another tracker into a project",
		Long: `Brings the items of another tracker into a project: GitHub's issues as JSON (of the REST interface or of ` + "`gh issue list --json`" + `), Jira's as CSV or
as JSON of the REST interface, Linear's as CSV. FILE may be - for standard input.

Run it with --dry-run first: it lists what would be refused, and why. It may be interrupted and run again: an item is filed once, by its
name in the other tracker and --source, which together name it for ever, and what is here already stays as it is. Who is who is said with --user; whoever has no handle here
is kept by name. Nobody is told of what is imported.`,
		Example: `  bullpen import github issues.json --project OPS --source github:acme/shop --user octocat=ines --dry-run
  bullpen import jira export.csv --project OPS --status "In QA=in_review"`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error { return a.runImport(cmd.Context(), i, args[0], args[1]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&i.project, "project", "", "Key of the project that takes the items.")
	flags.StringVar(&i.source, "source", "", "Name of the other tracker, which tells its items from others' (the kind when left out), such as github:acme/shop.")
	flags.BoolVar(&i.dryRun, "dry-run", false, "Check everything and write nothing.")
	flags.StringArrayVar(&i.users, "user", nil, "Who is who: THEIRS=HANDLE. May be repeated.")
	flags.StringArrayVar(&i.statuses, "status", nil, "What a status becomes: THEIRS=todo|in_progress|in_review|done|cancelled|closed. May be repeated.")
	flags.StringArrayVar(&i.kinds, "type", nil, "What a type or a label becomes: THEIRS=TYPE. May be repeated.")
	flags.StringArrayVar(&i.priorities, "priority", nil, "What a priority becomes: THEIRS=none|low|normal|high|urgent. May be repeated.")
	flags.StringArrayVar(&i.columns, "column", nil, "What a column of a CSV is, where it has a name of another language: THEIRS=ENGLISH. May be repeated.")
	flags.StringVar(&i.zone, "zone", "UTC", "Time zone of times that name none.")
	flags.BoolVar(&i.dayFirst, "day-first", false, "Read 3/4/2025 as the third of April.")
	_ = cmd.MarkFlagRequired("project") // the flag is there
	return cmd
}

func (i importing) options() (imports.Options, error) {
	o := imports.Options{DayFirst: i.dayFirst}
	var err error
	if o.Zone, err = time.LoadLocation(i.zone); err != nil {
		return o, fmt.Errorf("--zone %q is no time zone: give one such as Europe/Lisbon", i.zone)
	}
	for _, m := range []struct {
		flag  string
		pairs []string
		into  *map[string]string
	}{{"user", i.users, &o.Users}, {"status", i.statuses, &o.Statuses}, {"type", i.kinds, &o.Types}, {"priority", i.priorities, &o.Priorities}, {"column", i.columns, &o.Columns}} {
		if *m.into, err = pairs(m.flag, m.pairs); err != nil {
			return o, err
		}
	}
	return o, nil
}

func pairs(flag string, texts []string) (map[string]string, error) {
	out := map[string]string{}
	for _, text := range texts {
		from, to, ok := strings.Cut(text, "=")
		if !ok || strings.TrimSpace(from) == "" || strings.TrimSpace(to) == "" {
			return nil, fmt.Errorf("--%s %q must be THEIRS=OURS", flag, text)
		}
		out[from] = strings.TrimSpace(to)
	}
	return out, nil
}

func (a *app) runImport(ctx context.Context, i importing, kind, name string) error {
	o, err := i.options()
	if err != nil {
		return err
	}
	if i.source == "" {
		i.source = kind
	}
	client, err := a.client("tracker")
	if err != nil {
		return err
	}
	file := io.NopCloser(a.In)
	if name != "-" {
		if file, err = os.Open(name); err != nil {
			return err
		}
	}
	defer func() { _ = file.Close() }()
	run := &importRun{
		client: trackerv1connect.NewTrackerServiceClient(client), importing: i, seen: map[string]bool{},
		sum: imported{DryRun: i.dryRun, Refusals: []importRefusal{}, Warnings: map[string]int{}, Examples: map[string]string{}},
	}
	failed := run.all(ctx, kind, file, o)
	if failed != nil && run.sum.Read == 0 {
		return failed
	}
	if err := a.printImport(run.sum); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("the import ended early: %w; run it again to go on", failed)
	}
	return nil
}

// importRun sends a file in parts.
type importRun struct {
	importing
	client trackerv1connect.TrackerServiceClient
	sum    imported
	// seen are the names that have come: an item that comes twice is filed once, as it came first.
	seen map[string]bool
	// ends are the items that those that are filed are part of or wait for.
	ends  []end
	part  []imports.Record
	bytes int
}

func (r *importRun) all(ctx context.Context, kind string, file io.Reader, o imports.Options) error {
	for record, err := range imports.Read(kind, file, o) {
		if err != nil {
			return err
		}
		r.sum.Read++
		if record.Problem != "" {
			r.refuse(record.Place, record.Problem)
			continue
		}
		if r.seen[record.Item.GetExternalId()] {
			r.sum.There++
			r.warn(record.Place, "it comes again in the file: what came first counts")
			continue
		}
		r.seen[record.Item.GetExternalId()] = true
		size := proto.Size(record.Item)
		if len(r.part) == partItems || r.bytes+size > partBytes && len(r.part) > 0 {
			if err := r.send(ctx); err != nil {
				return err
			}
		}
		r.part, r.bytes = append(r.part, record), r.bytes+size
	}
	if err := r.send(ctx); err != nil {
		return err
	}
	r.missing()
	return nil
}

// end is an item that the one at a place is part of or waits for.
type end struct{ place, name string }

// missing warns of items that others are part of or wait for and that have not come.
func (r *importRun) missing() {
	for _, e := range r.ends {
		if !r.seen[e.name] {
			r.warn(e.place, "what it is part of or waits for is not in the file: they are connected once that is imported with the same --source")
		}
	}
}

// send sends what has gathered.
func (r *importRun) send(ctx context.Context) error {
	if len(r.part) == 0 {
		return nil
	}
	req := &trackerv1.ImportWorkItemsRequest{Project: r.project, Source: r.source, DryRun: r.dryRun}
	for _, record := range r.part {
		req.Items = append(req.Items, record.Item)
	}
	res, err := r.client.ImportWorkItems(operator(ctx), req)
	if err != nil {
		return err
	}
	for n, result := range res.GetResults() {
		r.count(r.part[n], result)
	}
	r.part, r.bytes = nil, 0
	return nil
}

func (r *importRun) count(record imports.Record, result *trackerv1.ImportResult) {
	switch result.GetOutcome() {
	case "refused":
		r.refuse(record.Place, result.GetProblem())
		return
	case "there":
		r.sum.There++
		return
	}
	r.sum.Filed++
	r.sum.Comments += len(record.Item.GetComments())
	for _, name := range append([]string{record.Item.GetParent()}, record.Item.GetWaitingOn()...) {
		if name != "" {
			r.ends = append(r.ends, end{record.Place, name})
		}
	}
	for _, warning := range append(record.Warnings, result.GetWarnings()...) {
		r.warn(record.Place, warning)
	}
}

func (r *importRun) warn(place, warning string) {
	r.sum.Warnings[warning]++
	if r.sum.Examples[warning] == "" {
		r.sum.Examples[warning] = place
	}
}

func (r *importRun) refuse(place, problem string) {
	r.sum.Refused++
	r.sum.Refusals = append(r.sum.Refusals, importRefusal{Place: place, Problem: problem})
}

func (a *app) printImport(sum imported) error {
	if a.json {
		return a.printJSON(sum)
	}
	filed := "filed"
	if sum.DryRun {
		filed = "would be filed"
	}
	if _, err := fmt.Fprintf(a.Out, "%d read: %d %s with %s, %d here already, %d refused.\n",
		sum.Read, sum.Filed, filed, count(sum.Comments, "comment"), sum.There, sum.Refused); err != nil {
		return err
	}
	if len(sum.Refusals) > 0 {
		if err := table(a.Out, []string{"REFUSED", "WHERE", "WHY"}, refusalRows(sum)); err != nil {
			return err
		}
	}
	if len(sum.Warnings) == 0 {
		return nil
	}
	return table(a.Out, []string{"TIMES", "FIRST AT", "WARNING"}, warningRows(sum))
}

// shownPlaces is how many places a line names of those that are refused for the same reason.
const shownPlaces = 5

// refusalRows lists why records were refused, the most frequent reason first. Every one of them is in the answer as JSON.
func refusalRows(sum imported) [][]string {
	times, places := map[string]int{}, map[string][]string{}
	for _, refusal := range sum.Refusals {
		times[refusal.Problem]++
		if len(places[refusal.Problem]) < shownPlaces {
			places[refusal.Problem] = append(places[refusal.Problem], refusal.Place)
		}
	}
	var rows [][]string
	for _, problem := range byCount(times) {
		where := strings.Join(places[problem], ", ")
		if more := times[problem] - shownPlaces; more > 0 {
			where += fmt.Sprintf(" and %d more", more)
		}
		rows = append(rows, []string{fmt.Sprint(times[problem]), where, indented(problem)})
	}
	return rows
}

// warningRows lists the warnings, the most frequent first.
func warningRows(sum imported) [][]string {
	var rows [][]string
	for _, warning := range byCount(sum.Warnings) {
		rows = append(rows, []string{fmt.Sprint(sum.Warnings[warning]), sum.Examples[warning], indented(warning)})
	}
	return rows
}

func byCount(counts map[string]int) []string {
	return slices.SortedFunc(maps.Keys(counts), func(x, y string) int {
		return cmp.Or(cmp.Compare(counts[y], counts[x]), cmp.Compare(x, y))
	})
}
