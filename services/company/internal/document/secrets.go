package document

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/bullpenhq/bullpen/services/company/internal/template"
	"github.com/bullpenhq/bullpen/services/company/internal/yamltree"
)

// credentialShapes are how well-known credentials look, wherever they stand.
const credentialShapes = `\b(xox[a-z]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{8,}|gh[oprsu]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}` +
	`|glpat-[A-Za-z0-9_-]{16,}|sk-[A-Za-z0-9_-]{16,}|AKIA[A-Z0-9]{12,}|bp_[A-Za-z0-9_-]{40,}` +
	`|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]*)|-----BEGIN [A-Z ]*PRIVATE KEY-----`

var credential = regexp.MustCompile(credentialShapes)

func looksSecret(s string) bool { return credential.MatchString(s) }

// checkTexts looks at every text of the document: the form of `${NAME}`, and credentials written in clear.
func (r *reader) checkTexts(root *yamltree.Node) {
	r.checkText(root, placeOf("", root), false)
}

// checkText walks down. A scenario is in another language, where `${` may mean something else.
func (r *reader) checkText(n *yamltree.Node, at place, foreign bool) {
	for _, i := range items(n, at) {
		r.checkText(i.node, i.at, foreign)
	}
	for _, e := range n.Entries {
		path := join(at.path, e.Key)
		scenario := strings.HasPrefix(path, "providers.llm.") && strings.Count(path, ".") == 3 && e.Key == "scenario"
		r.checkText(e.Value, place{path: path, line: e.Line, column: e.Column}, foreign || scenario)
	}
	if n.Kind != yamltree.String {
		return
	}
	if _, err := template.Parse(n.Text); err != nil && !foreign {
		r.add(at, KindValue, "%s", err)
	}
	if looksSecret(n.Text) {
		r.add(at, KindSecret, "holds a credential in clear; keep it in a secret and write `${NAME}` here")
	}
}

// secretOnly demands that a credential is one `${NAME}` and nothing else.
func (r *reader) secretOnly(v value[string]) {
	if !v.given {
		return
	}
	t, err := template.Parse(v.v)
	if err != nil || looksSecret(v.v) {
		return // checkTexts says so
	}
	if !t.Whole() {
		r.add(v.at, KindSecret, "is a credential and must be a `${NAME}`, with nothing round it; keep the value in a secret")
	}
}

// secretIn demands a `${NAME}` in the value of a variable or header whose name says that it is a credential.
func (r *reader) secretIn(name string, v value[string]) {
	if v.v == "" || !namesSecret(name) || looksSecret(v.v) {
		return
	}
	if t, err := template.Parse(v.v); err == nil && len(t.Names()) == 0 {
		r.add(v.at, KindSecret, "looks like a credential by its name and must hold a `${NAME}`; keep the value in a secret")
	}
}

// namesSecret reports whether a variable's or header's name ends in a word for a credential: API_KEY, Authorization and
// botToken do, MAX_TOKENS, TOKEN_FILE and JIRA_URL do not.
func namesSecret(name string) bool {
	words := nameWords(name)
	if len(words) == 0 {
		return false
	}
	last := words[len(words)-1]
	if contains([]string{
		"token", "secret", "password", "passwd", "passphrase", "pwd", "key", "apikey", "pat", "auth", "authorization",
		"cookie", "credential", "credentials", "dsn",
	}, last) {
		return true
	}
	return contains(words, "xoxb") || contains(words, "xoxp") || contains(words, "xoxc")
}

// nameWords splits at underscores, dashes and where small letters end: "X-Api-Key" and "xApiKey" are x, api, key.
func nameWords(name string) []string {
	var b strings.Builder
	small := false
	for _, r := range name {
		if small && unicode.IsUpper(r) {
			b.WriteByte(' ')
		}
		small = unicode.IsLower(r)
		b.WriteRune(unicode.ToLower(r))
	}
	return strings.FieldsFunc(b.String(), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// address checks an http address. `${NAME}` may stand in it, and then only what is left is looked at.
func (r *reader) address(v value[string]) {
	if !v.given || looksSecret(v.v) {
		return
	}
	t, err := template.Parse(v.v)
	if err != nil || t.Whole() {
		return
	}
	stand := map[string]string{}
	for _, name := range t.Names() {
		stand[name] = "1"
	}
	u, err := url.Parse(t.Fill(stand))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		r.add(v.at, KindValue, "must be an address that begins with http:// or https:// and names a host")
		return
	}
	if password, ok := u.User.Password(); ok && password != "1" {
		r.add(v.at, KindSecret, "holds a password in clear; write `${NAME}` in its place")
	}
	for key, values := range u.Query() {
		if namesSecret(key) && slices.ContainsFunc(values, func(s string) bool { return s != "" && s != "1" }) {
			r.add(v.at, KindSecret, "holds a credential in clear in %s; write `${NAME}` in its place", quote(key))
		}
	}
}

// plural counts: "1 line", "2 lines".
func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%s %ss", strconv.Itoa(n), noun)
}
