package document

import (
	"strings"

	"github.com/bullpenhq/bullpen/services/company/internal/template"
)

// Masked stands where a credential is not shown. Put back in its place, it means what stands there already.
const Masked = "__redacted__"

// MaskServer answers how a text of an MCP server's entry is shown: as it is, or [Masked] when it is a credential and not exactly
// one `${NAME}`. The path is keys joined by dots, from the entry.
func MaskServer(path, text string) string {
	block, key, _ := strings.Cut(path, ".")
	holds := looksSecret(text)
	switch block {
	case "env", "headers":
		holds = holds || namesSecret(key)
	case "authorization":
		holds = holds || key == "client_secret"
	}
	if t, err := template.Parse(text); text == "" || !holds || err == nil && t.Whole() {
		return text
	}
	return Masked
}
