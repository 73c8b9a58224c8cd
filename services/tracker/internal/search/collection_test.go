package search

import (
	"slices"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// vocabulary has words that neither begin with nor resemble one another.
var vocabulary = []string{"anchor", "biscuit", "copper", "dolphin", "elephant", "fountain", "guitar", "harvest"}

func TestACollectionFindsWhatWasWrittenLastThroughMergesAndRestarts(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		f, err := openFolder("")
		require.NoError(r, err)
		defer func() { require.NoError(r, f.close()) }()
		ids := make([]uuid.UUID, 12)
		for i := range ids {
			ids[i] = uuid.NewSHA1(uuid.Nil, []byte{byte(i)})
		}
		c, model := newCollection(nil), map[uuid.UUID]Document{}
		failed := func(err error) { panic(err) }
		r.Repeat(map[string]func(*rapid.T){
			"write": func(r *rapid.T) {
				var written []Document
				for _, id := range rapid.SliceOfNDistinct(rapid.SampledFrom(ids), 1, 4, rapid.ID[uuid.UUID]).Draw(r, "ids") {
					d := Document{
						ID: id, Project: rapid.SampledFrom([]string{"OPS", "SHOP"}).Draw(r, "project"), Open: rapid.Bool().Draw(r, "open"),
						Title: rapid.SampledFrom(vocabulary).Draw(r, "title"), Comments: rapid.SliceOfN(rapid.SampledFrom(vocabulary), 0, 3).Draw(r, "comments"),
					}
					model[id] = d
					written = append(written, d)
				}
				require.NoError(r, c.apply(written, nil))
				require.NoError(r, c.compact(f, failed))
			},
			"remove": func(r *rapid.T) {
				id := rapid.SampledFrom(ids).Draw(r, "id")
				delete(model, id)
				require.NoError(r, c.apply(nil, []uuid.UUID{id}))
				require.NoError(r, c.compact(f, failed))
			},
			"merge beside a write": func(r *rapid.T) {
				old := c.current.Load().parts
				if len(old) == 0 {
					return
				}
				made, err := merged(old, f)
				require.NoError(r, err)
				id := rapid.SampledFrom(ids).Draw(r, "id")
				model[id] = Document{ID: id, Project: "OPS", Title: "guitar"}
				require.NoError(r, c.apply([]Document{model[id]}, nil))
				c.replace(old, made)
			},
			"restart": func(r *rapid.T) {
				v, err := c.keep(f)
				require.NoError(r, err)
				m := manifest{Format: format, Source: "here"}
				for _, p := range v.parts {
					m.Segments = append(m.Segments, segmentFile{File: p.file, Removed: p.bits()})
				}
				require.NoError(r, f.commit(m))
				_, parts, err := f.load("here")
				require.NoError(r, err)
				c = newCollection(parts)
			},
			"": func(r *rapid.T) {
				require.Equal(r, len(model), c.current.Load().alive())
				q := Query{
					Text: rapid.SampledFrom(vocabulary).Draw(r, "word"), Project: rapid.SampledFrom([]string{"", "OPS", "NONE"}).Draw(r, "in"),
					OpenOnly: rapid.Bool().Draw(r, "open only"), Limit: len(ids),
				}
				result, err := c.current.Load().search(t.Context(), q, &c.scratch)
				require.NoError(r, err)
				found := []string{}
				for i, hit := range result.Hits {
					found = append(found, hit.ID.String())
					require.True(r, i == 0 || result.Hits[i-1].Score >= hit.Score)
				}
				slices.Sort(found)
				require.Equal(r, expected(model, q), found)
				require.Equal(r, len(found), result.Total)
			},
		})
	})
}

func expected(model map[uuid.UUID]Document, q Query) []string {
	found := []string{}
	for id, d := range model {
		fits := (q.Project == "" || q.Project == d.Project) && (!q.OpenOnly || d.Open)
		if fits && (d.Title == q.Text || slices.Contains(d.Comments, q.Text)) {
			found = append(found, id.String())
		}
	}
	slices.Sort(found)
	return found
}
