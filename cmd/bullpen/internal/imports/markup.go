package imports

import (
	"encoding/json"
	"regexp"
	"strings"
)

// account is how a mention names somebody.
var account = regexp.MustCompile(`\[~(?:accountid:)?([^\]\s]+)\]`)

var (
	wikiCode  = regexp.MustCompile(`(?s)(?:^|[^{])(\{(?:code|noformat)(?::([^}\n]*))?\})(.*?)\{(?:code|noformat)\}`)
	wikiQuote = regexp.MustCompile(`(?s)\{quote\}(.*?)\{quote\}`)
	wikiList  = regexp.MustCompile(`(?m)^[ \t]*([*#]+)[ \t]+`)
	wikiHead  = regexp.MustCompile(`(?m)^[ \t]*\|\|(.+)\|\|[ \t]*$`)
	wikiTitle = regexp.MustCompile(`(?m)^h([1-6])\.[ \t]*`)
	wikiBare  = regexp.MustCompile(`\[(https?://[^\]\s|]+)\]`)
	wikiLink  = regexp.MustCompile(`\[([^\]|\n]+)\|((?:https?|mailto):[^\]\s|]+)(?:\|[^\]\n]*)?\]`)
	wikiMono  = regexp.MustCompile(`\{\{([^}\n]+)\}\}`)
	wikiSaid  = regexp.MustCompile(`(?m)^bq\.[ \t]+`)
	wikiBold  = regexp.MustCompile(`(?m)(^|[\s(,;:|])\*([^\s*](?:[^*\n]*[^\s*])?)\*`)
	wikiColor = regexp.MustCompile(`\{color(?::[^}]*)?\}`)
)

// wiki turns Jira's wiki markup into Markdown. What it does not know stays as it is; code is never touched.
func wiki(text string) string {
	text = clean(text)
	var out strings.Builder
	at := 0
	for _, m := range wikiCode.FindAllStringSubmatchIndex(text, -1) {
		before := inline(text[at:m[2]])
		out.WriteString(before)
		if strings.TrimSpace(before) != "" && !strings.HasSuffix(before, "\n") {
			out.WriteByte('\n')
		}
		language := ""
		if m[4] >= 0 {
			language = codeLanguage(text[m[4]:m[5]])
		}
		code := strings.Trim(text[m[6]:m[7]], "\n")
		fence := "```"
		for strings.Contains(code, fence) {
			fence += "`"
		}
		out.WriteString(fence + language + "\n" + code + "\n" + fence)
		if at = m[1]; at < len(text) && text[at] != '\n' {
			out.WriteByte('\n')
		}
	}
	out.WriteString(inline(text[at:]))
	return out.String()
}

// codeLanguage reads what stands in the head of a block of code: `java`, `java|title=Main.java`, `title=Main.java`.
func codeLanguage(head string) string {
	for part := range strings.SplitSeq(head, "|") {
		if value, ok := strings.CutPrefix(part, "language="); ok {
			return strings.ToLower(strings.TrimSpace(value))
		}
		if part = strings.TrimSpace(part); part != "" && !strings.ContainsAny(part, "= \t") {
			return strings.ToLower(part)
		}
	}
	return ""
}

// inline turns what stands between blocks of code. The order matters: lists come before titles, whose marks look like theirs.
func inline(text string) string {
	text = wikiQuote.ReplaceAllStringFunc(text, func(quote string) string {
		said := strings.TrimSpace(wikiQuote.FindStringSubmatch(quote)[1])
		return "\n> " + strings.ReplaceAll(said, "\n", "\n> ") + "\n"
	})
	text = wikiList.ReplaceAllStringFunc(text, func(mark string) string {
		bullets := strings.TrimSpace(mark)
		indent := strings.Repeat("   ", len(bullets)-1)
		if strings.HasSuffix(bullets, "#") {
			return indent + "1. "
		}
		return indent + "- "
	})
	text = wikiHead.ReplaceAllStringFunc(text, func(head string) string {
		cells := strings.Split(strings.Trim(strings.TrimSpace(head), "|"), "||")
		return "|" + strings.Join(cells, "|") + "|\n|" + strings.Repeat("---|", len(cells))
	})
	text = wikiTitle.ReplaceAllStringFunc(text, func(title string) string { return strings.Repeat("#", int(title[1]-'0')) + " " })
	text = wikiBare.ReplaceAllString(text, "<$1>")
	text = wikiLink.ReplaceAllString(text, "[$1]($2)")
	text = wikiMono.ReplaceAllString(text, "`$1`")
	text = wikiSaid.ReplaceAllString(text, "> ")
	text = wikiBold.ReplaceAllString(text, "$1**$2**")
	text = strings.NewReplacer("{*}", "**", "{_}", "_").Replace(text)
	text = account.ReplaceAllString(text, "@$1")
	return wikiColor.ReplaceAllString(text, "")
}

// adf is a node of the Atlassian Document Format.
type adf struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	Content []adf           `json:"content"`
	Marks   []adf           `json:"marks"`
	Attrs   json.RawMessage `json:"attrs"`
}

func (n adf) attr(name string) string {
	var attrs map[string]any
	if json.Unmarshal(n.Attrs, &attrs) != nil {
		return ""
	}
	switch v := attrs[name].(type) {
	case string:
		return v
	case float64:
		return strings.TrimSuffix(strings.TrimRight(json.Number(strings.TrimSpace(jsonNumber(v))).String(), "0"), ".")
	}
	return ""
}

func jsonNumber(v float64) string {
	raw, _ := json.Marshal(v) // a finite number always has a form
	return string(raw)
}

// prose reads a text that is either wiki markup or a document.
func prose(raw json.RawMessage) string {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return wiki(text)
	}
	var document adf
	if json.Unmarshal(raw, &document) != nil {
		return ""
	}
	return strings.TrimSpace(document.markdown(""))
}

// markdown writes a node; indent stands before each line of a list's entries.
func (n adf) markdown(indent string) string {
	switch n.Type {
	case "text":
		return n.marked()
	case "hardBreak":
		return "\n"
	case "mention", "emoji", "status", "date", "inlineCard":
		return or(n.attr("text"), or(n.attr("shortName"), or(n.attr("url"), n.attr("timestamp"))))
	case "paragraph":
		return n.children(indent) + "\n\n"
	case "heading":
		level := max(1, min(6, len(n.attr("level"))))
		if l := n.attr("level"); len(l) == 1 && l[0] >= '1' && l[0] <= '6' {
			level = int(l[0] - '0')
		}
		return strings.Repeat("#", level) + " " + n.children(indent) + "\n\n"
	case "codeBlock":
		return "```" + n.attr("language") + "\n" + n.children(indent) + "\n```\n\n"
	case "rule":
		return "---\n\n"
	case "bulletList", "orderedList", "taskList":
		return n.list(indent)
	case "blockquote", "panel":
		return "> " + strings.ReplaceAll(strings.TrimSpace(n.children(indent)), "\n", "\n> ") + "\n\n"
	case "tableRow":
		var cells []string
		for _, cell := range n.Content {
			cells = append(cells, strings.Join(strings.Fields(cell.children(indent)), " "))
		}
		return "| " + strings.Join(cells, " | ") + " |\n"
	case "table":
		return n.children(indent) + "\n"
	default:
		return n.children(indent)
	}
}

func (n adf) children(indent string) string {
	var out strings.Builder
	for _, child := range n.Content {
		out.WriteString(child.markdown(indent))
	}
	return out.String()
}

func (n adf) list(indent string) string {
	var out strings.Builder
	for _, entry := range n.Content {
		mark := "- "
		if n.Type == "orderedList" {
			mark = "1. "
		}
		out.WriteString(indent + mark + strings.TrimSpace(entry.children(indent+"  ")) + "\n")
	}
	if indent == "" {
		out.WriteString("\n")
	}
	return out.String()
}

// marked is a run of text with its emphasis.
func (n adf) marked() string {
	text := n.Text
	for _, mark := range n.Marks {
		switch mark.Type {
		case "code":
			text = "`" + text + "`"
		case "strong":
			text = "**" + text + "**"
		case "em":
			text = "*" + text + "*"
		case "strike":
			text = "~~" + text + "~~"
		case "link":
			text = "[" + text + "](" + mark.attr("href") + ")"
		}
	}
	return text
}
