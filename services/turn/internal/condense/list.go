package condense

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxPath is how deep in objects the list of a result is looked for.
const maxPath = 4

// List answers a result that is a list, or an object with one large list in it, with the members that fit the task best. Members
// stay whole, as they were written and in their order; so does everything round the list. It answers false for what is no such
// thing, and where that would be no shorter.
func List(text string, w Want) (string, bool) {
	raw := json.RawMessage(strings.TrimSpace(text))
	if !json.Valid(raw) {
		return "", false
	}
	found := largest(raw, nil)
	// Where most of it stands elsewhere, fewer members make it no smaller.
	if len(found.members) <= w.TopItems || 2*len(found.raw) < len(raw) {
		return "", false
	}
	chosen := best(found.members, w.Task, w.TopItems)
	named := "the list"
	if len(found.path) > 0 {
		named = "`" + strings.Join(found.path, ".") + "`"
	}
	shown := fmt.Sprintf("[Condensed: %d of %d members of %s shown, those that fit the task best, each whole. %s]\n%s",
		len(chosen), len(found.members), named, w.rest(len(text)), with(raw, found.path, chosen))
	return shown, len(shown) < len(text)
}

// list is a list in a result.
type list struct {
	path    []string
	raw     json.RawMessage
	members []json.RawMessage
}

// largest finds the longest list in a value, through objects only: a list of lists is one list.
func largest(raw json.RawMessage, path []string) list {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return list{}
	}
	if raw[0] == '[' {
		found := list{path: path, raw: raw}
		_ = json.Unmarshal(raw, &found.members) // it is valid
		return found
	}
	var found list
	if len(path) < maxPath {
		for _, f := range fields(raw) {
			if inner := largest(f.value, append(slices.Clone(path), f.key)); len(inner.raw) > len(found.raw) {
				found = inner
			}
		}
	}
	return found
}

// field is a member of an object, its value as it was written.
type field struct {
	key   string
	value json.RawMessage
}

// fields answers an object's members in order; none for what is no object.
func fields(raw json.RawMessage) []field {
	decoder := json.NewDecoder(bytes.NewReader(raw))
	if token, err := decoder.Token(); err != nil || token != json.Delim('{') {
		return nil
	}
	var out []field
	for decoder.More() {
		token, err := decoder.Token()
		key, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || decoder.Decode(&value) != nil {
			return nil
		}
		out = append(out, field{key, value})
	}
	return out
}

// with answers a value with the members of the list at path replaced.
func with(raw json.RawMessage, path []string, members []json.RawMessage) json.RawMessage {
	var b bytes.Buffer
	if len(path) == 0 {
		b.WriteByte('[')
		for i, member := range members {
			if i > 0 {
				b.WriteByte(',')
			}
			b.Write(member)
		}
		b.WriteByte(']')
		return b.Bytes()
	}
	b.WriteByte('{')
	replaced := false
	for i, f := range fields(raw) {
		if i > 0 {
			b.WriteByte(',')
		}
		b.Write(quoted(f.key))
		b.WriteByte(':')
		if f.key == path[0] && !replaced {
			f.value, replaced = with(f.value, path[1:], members), true
		}
		b.Write(f.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

func quoted(key string) []byte {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	_ = encoder.Encode(key) // text always can be
	return bytes.TrimSpace(b.Bytes())
}

// best answers the members in which most of the task's words stand, rare words before common ones; of equals the earlier ones. The
// members stay in their order.
func best(members []json.RawMessage, task string, most int) []json.RawMessage {
	wanted := words(task)
	holds := make([]map[string]bool, len(members))
	in := map[string]int{}
	for i, member := range members {
		holds[i] = map[string]bool{}
		for word := range words(string(member)) {
			if wanted[word] {
				holds[i][word] = true
				in[word]++
			}
		}
	}
	score := make([]float64, len(members))
	places := make([]int, len(members))
	for i := range members {
		places[i] = i
		for _, word := range slices.Sorted(maps.Keys(holds[i])) {
			score[i] += math.Log(1 + float64(len(members))/float64(in[word]))
		}
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(score[b], score[a]) })
	places = places[:min(most, len(places))]
	slices.Sort(places)
	out := make([]json.RawMessage, 0, len(places))
	for _, i := range places {
		out = append(out, members[i])
	}
	return out
}

// shortNumber is a number that stands everywhere: a day, an hour, a count.
const shortNumber = 2

// words answers the words of a text: letters and digits, without case. One letter alone says nothing, nor does a short number.
func words(text string) map[string]bool {
	out := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) }) {
		long := utf8.RuneCountInString(word)
		number := strings.IndexFunc(word, unicode.IsLetter) < 0
		if long > 1 && (!number || long > shortNumber) {
			out[word] = true
		}
	}
	return out
}
