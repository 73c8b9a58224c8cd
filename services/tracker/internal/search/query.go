package search

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"runtime"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/search/segment"
	"github.com/bullpenhq/bullpen/services/tracker/internal/search/words"
)

// Query is what is looked for.
type Query struct {
	Text string
	// Project narrows to one, by key.
	Project  string
	OpenOnly bool
	Limit    int
	// Except are items that neither count nor are answered.
	Except []uuid.UUID
	// Whole leaves out words that only begin with or resemble those of the text.
	Whole bool
}

// Result is what was found.
type Result struct {
	// Hits are the best, best first; of equals the newest.
	Hits []Hit
	// Total is how many there are.
	Total int
	// Weights are the words that were looked for, others that resemble them among them, and what each is worth.
	Weights map[string]float32
	// Ideal is the score of an item whose title is the text and which has no other.
	Ideal float32
	// Partial is about how many items are too long to be searched whole.
	Partial int
}

// Hit is an item that was found.
type Hit struct {
	ID    uuid.UUID
	Score float32
}

// What a word is worth that is not the one looked for.
const (
	begunWeight = 0.6  // it only begins so
	typoWeight  = 0.5  // one step away
	typosWeight = 0.25 // two
)

// What bounds the words that stand for one of the query: how many there are, and how many postings they have in each segment.
const (
	maxBegun    = 32
	maxNear     = 16
	maxPostings = 1 << 18
)

// rare is how many documents may have a word that may still be a mistake for another.
const rare = 5

// group is a word of the query and those that stand for it.
type group struct {
	words []weighted // those worth most first
	idf   float32
}

// weighted is a word and what it is worth beside the one that was looked for.
type weighted struct {
	text   string
	weight float32
}

// search reads one view. It holds one number for each document while it runs.
func (v *view) search(ctx context.Context, q Query, spare *scratch) (Result, error) {
	defer runtime.KeepAlive(v) // its bytes may be mapped
	groups, result := v.plan(q)
	result.Partial = v.partial()
	best := top{limit: q.Limit}
	for _, p := range v.parts {
		scores := spare.take(p.segment.Docs())
		for _, g := range groups {
			if err := ctx.Err(); err != nil {
				spare.give(scores)
				return result, err
			}
			g.score(p.segment, v.mean(), scores.all, spare)
		}
		for _, id := range q.Except {
			if doc, ok := p.segment.Find(id); ok {
				scores.all[doc] = 0
			}
		}
		passes := p.segment.Filter(q.Project, q.OpenOnly)
		for doc, score := range scores.all {
			if score > 0 && p.alive(doc) && passes(doc) {
				result.Total++
				best.offer(p.segment, doc, score)
			}
		}
		spare.give(scores)
	}
	result.Hits = best.hits
	return result, nil
}

// plan parts the text into words, each with those that stand for it.
func (v *view) plan(q Query) ([]group, Result) {
	looked := words.Of(q.Text)
	result := Result{Weights: map[string]float32{}}
	var groups []group
	var length float32
	words.Each(q.Text, func(words.Word) { length += titleWeight })
	for i, w := range looked {
		g := v.group(w, q.Whole, i == len(looked)-1)
		for _, word := range g.words {
			result.Weights[word.text] = max(result.Weights[word.text], word.weight*g.idf)
		}
		result.Ideal += g.idf * segment.Worth(titleWeight, length, v.mean())
		groups = append(groups, g)
	}
	return groups, result
}

// group finds what stands for a word: the last of a query may be unfinished, and one that hardly anybody uses may be that or a mistake.
// How rare it is, is how rare the word itself is; where nobody uses it, those that stand for it.
func (v *view) group(w words.Word, whole, last bool) group {
	terms := map[string]float32{}
	frequency := v.frequency(w.Text)
	if frequency > 0 {
		terms[w.Text] = 1
	}
	characters := utf8.RuneCountInString(w.Text)
	if !whole && !w.Dense {
		if characters >= 2 && (last || frequency < rare) {
			v.begun(w.Text, terms)
		}
		if frequency < rare && !strings.ContainsAny(w.Text, "0123456789") { // another number is another thing
			v.near(w.Text, characters, terms)
		}
	}
	if frequency == 0 {
		for text := range terms {
			frequency += v.frequency(text)
		}
	}
	frequency = min(frequency, v.docs)
	var g group
	for text, weight := range terms {
		g.words = append(g.words, weighted{text, weight})
	}
	slices.SortFunc(g.words, func(x, y weighted) int { return cmp.Or(cmp.Compare(y.weight, x.weight), cmp.Compare(x.text, y.text)) })
	g.idf = float32(math.Log1p((float64(v.docs-frequency) + 0.5) / (float64(frequency) + 0.5)))
	return g
}

func (v *view) frequency(text string) (n int) {
	for _, p := range v.parts {
		if term, ok := p.segment.Lookup(text); ok {
			n += p.segment.Frequency(term)
		}
	}
	return n
}

// begun adds the most frequent words that begin with text.
func (v *view) begun(text string, terms map[string]float32) {
	frequencies := map[string]int{}
	for _, p := range v.parts {
		p.segment.Prefixed(text, func(term int) { frequencies[string(p.segment.Term(term))] += p.segment.Frequency(term) })
	}
	choose(frequencies, maxBegun, terms, begunWeight)
}

// near adds the most frequent words that text may be a mistake for: one step away, or two for a long word that nothing is nearer to.
func (v *view) near(text string, characters int, terms map[string]float32) {
	if characters < 4 {
		return
	}
	for distance := 1; distance <= 2; distance++ {
		frequencies := map[string]int{}
		for _, p := range v.parts {
			p.segment.Near(text, distance, distance > 1, func(term, _ int) {
				frequencies[string(p.segment.Term(term))] += p.segment.Frequency(term)
			})
		}
		weight := float32(typoWeight)
		if distance > 1 {
			weight = typosWeight
		}
		choose(frequencies, maxNear, terms, weight)
		if len(frequencies) > 0 || characters < 8 {
			return
		}
	}
}

// choose adds the most frequent of some words, as far as they cost little to read.
func choose(frequencies map[string]int, most int, terms map[string]float32, weight float32) {
	found := make([]string, 0, len(frequencies))
	for text := range frequencies {
		found = append(found, text)
	}
	slices.SortFunc(found, func(x, y string) int { return cmp.Or(frequencies[y]-frequencies[x], cmp.Compare(x, y)) })
	postings, chosen := 0, 0
	for _, text := range found {
		if _, there := terms[text]; there || postings+frequencies[text] > maxPostings {
			continue
		}
		if chosen++; chosen > most {
			return
		}
		postings += frequencies[text]
		terms[text] = weight
	}
}

// score adds what the group is worth in each document of a segment: what the best of its words is.
func (g group) score(s *segment.Segment, mean float32, scores []float32, spare *scratch) {
	if len(g.words) == 1 {
		if term, ok := s.Lookup(g.words[0].text); ok {
			s.Score(term, g.words[0].weight*g.idf, mean, scores)
		}
		return
	}
	best := spare.take(s.Docs())
	defer spare.give(best)
	for _, word := range g.words {
		if term, ok := s.Lookup(word.text); ok {
			s.ScoreBest(term, word.weight*g.idf, mean, scores, best.all)
		}
	}
}

// numbers are one for each document of a segment, used again and again.
type numbers struct{ all []float32 }

// scratch keeps numbers for the next search.
type scratch struct{ pool sync.Pool }

// take answers n zeros.
func (s *scratch) take(n int) *numbers {
	z, ok := s.pool.Get().(*numbers)
	if !ok {
		z = new(numbers)
	}
	if cap(z.all) < n {
		z.all = make([]float32, n)
	}
	z.all = z.all[:n]
	clear(z.all)
	return z
}

func (s *scratch) give(n *numbers) { s.pool.Put(n) }

// top keeps the best hits in order.
type top struct {
	limit int
	hits  []Hit
}

func (t *top) offer(s *segment.Segment, doc int, score float32) {
	if len(t.hits) == t.limit && (t.limit == 0 || score < t.hits[t.limit-1].Score) {
		return
	}
	hit := Hit{ID: s.ID(doc), Score: score}
	at, _ := slices.BinarySearchFunc(t.hits, hit, func(have, h Hit) int {
		return cmp.Or(cmp.Compare(h.Score, have.Score), bytes.Compare(h.ID[:], have.ID[:]))
	})
	if at == t.limit {
		return
	}
	t.hits = slices.Insert(t.hits, at, hit)
	t.hits = t.hits[:min(len(t.hits), t.limit)]
}
