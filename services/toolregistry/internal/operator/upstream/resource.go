package upstream

import (
	"context"
	"regexp"
	"strings"
)

// Owners answers the servers that may have a resource, the likeliest first: the one that lists it, then those with a template that
// it fits, then every other that has resources at all. A server may have what it does not list.
func (u *Upstreams) Owners(ctx context.Context, uri string) []Server {
	var owners []Server
	seen := map[string]bool{}
	add := func(server Server) {
		if !seen[server.Name] {
			seen[server.Name] = true
			owners = append(owners, server)
		}
	}
	if item, ok := find(u.known(ctx, Resources), uri); ok {
		add(item.Server)
		return owners
	}
	for _, template := range u.known(ctx, Templates) {
		if Fits(template.Raw, uri) {
			add(template.Server)
		}
	}
	for _, server := range u.Servers(ctx) {
		if server.Capabilities.Resources != nil {
			add(server)
		}
	}
	return owners
}

// maxTemplate bounds what is made into an expression.
const maxTemplate = 4096

// expression is one of RFC 6570, with the operator that decides what it may stand for.
var expression = regexp.MustCompile(`\{([+#./;?&]?)[^{}]*\}`)

// Fits reports whether a URI can have been made of a template of RFC 6570. It is generous: it looks for an owner, and the owner
// decides.
func Fits(template, uri string) bool {
	if len(template) > maxTemplate {
		return false
	}
	var pattern strings.Builder
	pattern.WriteString(`^`)
	rest := 0
	for _, at := range expression.FindAllStringSubmatchIndex(template, -1) {
		pattern.WriteString(regexp.QuoteMeta(template[rest:at[0]]))
		if at[2] == at[3] {
			pattern.WriteString(`[^/?#]*`)
		} else {
			pattern.WriteString(`.*`)
		}
		rest = at[1]
	}
	pattern.WriteString(regexp.QuoteMeta(template[rest:]) + `$`)
	compiled, err := regexp.Compile(pattern.String())
	return err == nil && compiled.MatchString(uri)
}
