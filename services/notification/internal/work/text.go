package work

import (
	"fmt"
	"strings"
)

// text writes what an agent reads of a change: why it is told, what changed, what was said, and how to read and answer.
func text(c *Change, concerns []Concern, item Item) string {
	var b strings.Builder
	b.WriteString("You are told because " + join(sentences(concerns)) + ".\n")
	if item.ID != c.Item.ID && c.Item.Key != "" {
		fmt.Fprintf(&b, "It happened on %s %s.\n", c.Item.Key, c.Item.Title)
	}
	changed(&b, c)
	said(&b, c)
	how(&b, c, concerns, item)
	return strings.TrimRight(b.String(), "\n")
}

func sentences(concerns []Concern) []string {
	var all []string
	seen := map[string]bool{}
	for _, c := range concerns {
		line := sentence(c.Reason)
		if c.Reason == prioritised && c.About != nil {
			line = fmt.Sprintf("%s %s was put into your order of work", c.About.Key, c.About.Title)
		}
		if !seen[line] {
			seen[line] = true
			all = append(all, line)
		}
	}
	return all
}

func join(parts []string) string {
	if len(parts) < 2 {
		return strings.Join(parts, "")
	}
	last := len(parts) - 1
	return strings.Join(parts[:last], ", ") + " and " + parts[last]
}

// changed writes the block of what changed.
func changed(b *strings.Builder, c *Change) {
	switch {
	case c.Kind == "purged":
		fmt.Fprintf(b, "\n%s was destroyed for ever.\n", c.Item.Key)
		return
	case c.Kind == "created":
		fmt.Fprintf(b, "\nA new item, %s: %s\n", c.Item.Key, c.Item.Title)
	case len(c.Fields) > 0:
		b.WriteString("\nWhat changed:\n")
	}
	for _, f := range c.Fields {
		switch {
		case c.Kind == "created" && f.Name == "title":
		case c.Kind == "created":
			fmt.Fprintf(b, "- %s: %s\n", f.Name, f.To)
		default:
			fmt.Fprintf(b, "- %s: %s → %s\n", f.Name, nothing(f.From), nothing(f.To))
		}
	}
	if c.Reason != "" {
		fmt.Fprintf(b, "Why it was handed on: %s\n", c.Reason)
	}
}

func nothing(value string) string {
	if value == "" {
		return "(nothing)"
	}
	return value
}

// said writes the comment, whole.
func said(b *strings.Builder, c *Change) {
	s := c.Comment
	if s == nil {
		return
	}
	fmt.Fprintf(b, "\nThe comment (%s):\n", s.ID)
	if s.Body != "" {
		b.WriteString(s.Body + "\n")
	}
	if s.Choice != "" {
		fmt.Fprintf(b, "It chooses `%s`.\n", s.Choice)
	}
	if s.Question == "" {
		return
	}
	fmt.Fprintf(b, "\nTo decide: %s\n", s.Question)
	for _, o := range s.Options {
		fmt.Fprintf(b, "- `%s`: %s", o.ID, o.Label)
		if o.Detail != "" {
			b.WriteString(" (" + o.Detail + ")")
		}
		if o.ID == s.Recommended {
			b.WriteString(", recommended")
		}
		b.WriteString("\n")
	}
}

// how says where the whole of it stands and what an answer is.
func how(b *strings.Builder, c *Change, concerns []Concern, item Item) {
	if item.Key == "" || c.Kind == "purged" {
		return
	}
	fmt.Fprintf(b, "\n`get_work_item` with item %s shows all of it.", item.Key)
	strongest := concerns[0]
	switch {
	case strongest.OwesSurface != "":
		fmt.Fprintf(b, " You promised to say what was decided on %s", strongest.OwesSurface)
		if strongest.OwesChannel != "" {
			fmt.Fprintf(b, ", in %s", strongest.OwesChannel)
		}
		b.WriteString(".")
	case strongest.Reason == asked && c.Comment != nil && c.Comment.Question != "":
		fmt.Fprintf(b, " Answer with `comment_on_work_item`: item %s, answers %s, and the option you take in choice.", item.Key, c.Comment.ID)
	case strongest.Reason == asked && c.Comment != nil:
		fmt.Fprintf(b, " Answer with `comment_on_work_item`: item %s, answers %s.", item.Key, c.Comment.ID)
	default:
		for _, concern := range concerns {
			if concern.Addressed {
				fmt.Fprintf(b, " Answer with `comment_on_work_item`, or by what `update_work_item` makes of it.")
				return
			}
		}
	}
}
