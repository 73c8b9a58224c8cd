package tracker_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

var (
	queryBlock = regexp.MustCompile("(?s)```(query|refused)\n(.*?)```")
	queryRow   = regexp.MustCompile("(?m)^\\| `([^`=]+)=([^`]*)` \\|")
)

// Every example of the page about queries is asked of a tracker, so that none of them promises what is not there.
func TestEveryExampleOfTheQueryGrammarIsAnswered(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/query.md")
	require.NoError(t, err)
	b := listWorld(t)
	options := func(slugs ...string) (all []*trackerv1.FieldOption) {
		for _, slug := range slugs {
			all = append(all, &trackerv1.FieldOption{Slug: slug, Name: slug})
		}
		return all
	}
	_, err = b.client.WriteWorkCatalogue(operator(t.Context()), &trackerv1.WriteWorkCatalogueRequest{Fields: []*trackerv1.FieldDeclaration{
		{Slug: "note", Name: "Note", Type: "text"},
		{Slug: "cost", Name: "Cost", Type: "number"},
		{Slug: "shipped", Name: "Shipped", Type: "date"},
		{Slug: "team", Name: "Team", Type: "dropdown", Options: options("core", "edge")},
		{Slug: "parts", Name: "Parts", Type: "labels", Options: options("door", "window")},
		{Slug: "signed", Name: "Signed", Type: "checkbox"},
		{Slug: "owner", Name: "Owner", Type: "people"},
	}})
	require.NoError(t, err)
	for _, title := range []string{"Renew the certificate", "Send the invoice"} {
		put(t, b, &trackerv1.CreateWorkItemRequest{Title: title})
	}
	ask := func(conditions map[string]any) error {
		req := &trackerv1.ListWorkItemsRequest{}
		if preset, ok := conditions["preset"].(string); ok {
			req.Preset = preset
			delete(conditions, "preset")
		}
		req.Query = where(t, conditions)
		_, err := b.client.ListWorkItems(seat(t.Context(), "designer"), req)
		return err
	}
	rows := queryRow.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(rows), 40)
	for _, row := range rows {
		require.NoError(t, ask(map[string]any{row[1]: row[2]}), row[0])
	}
	blocks := queryBlock.FindAllStringSubmatch(string(page), -1)
	require.Greater(t, len(blocks), 6)
	for _, block := range blocks {
		conditions := map[string]any{}
		for line := range strings.Lines(block[2]) {
			key, value, ok := strings.Cut(strings.TrimSpace(line), " = ")
			require.True(t, ok, line)
			conditions[key] = value
		}
		err := ask(conditions)
		if block[1] == "refused" {
			require.Error(t, err, block[2])
			require.Equal(t, fault.Invalid, rpc.FromError(err).Class, block[2])
			continue
		}
		require.NoError(t, err, block[2])
	}
}
