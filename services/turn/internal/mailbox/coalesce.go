package mailbox

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Batch bounds what becomes one turn.
type Batch struct {
	// Max is how many deliveries; 0 means 20.
	Max int
	// Window is how long to wait for more of a conversation after its newest delivery.
	Window time.Duration
}

const defaultBatch = 20

// Pick chooses what a seat works on next: of the waiting deliveries (oldest first) those of the conversation that has waited
// longest, at most b.Max. A conversation that may still grow inside its window is passed over; wait is then how long until
// the first such one is due. Both results are zero when nothing waits.
func Pick(waiting []Mail, b Batch, now time.Time) (picked []Mail, wait time.Duration) {
	if b.Max <= 0 {
		b.Max = defaultBatch
	}
	seen := map[string]bool{}
	for _, first := range waiting {
		if seen[first.ConversationKey] {
			continue
		}
		seen[first.ConversationKey] = true
		var all []Mail
		newest := first.ReceiveAt
		for _, m := range waiting {
			// What failed together is tried again together and alone: only then is it the same work, whose writes are known.
			if m.ConversationKey == first.ConversationKey && m.TurnID == first.TurnID {
				all = append(all, m)
				newest = later(newest, m.ReceiveAt)
			}
		}
		due := newest.Add(b.Window)
		if len(all) < b.Max && due.After(now) && first.TurnID == "" {
			if left := due.Sub(now); wait == 0 || left < wait {
				wait = left
			}
			continue
		}
		return all[:min(len(all), b.Max)], 0
	}
	return nil, wait
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// WorkKey names the unit of work that a set of deliveries is: the same for the same set in any order, whoever works on it and
// however often.
func WorkKey(batch []Mail) string {
	ids := make([]string, len(batch))
	for i, m := range batch {
		ids[i] = m.DeliveryID
	}
	slices.Sort(ids)
	sum := sha256.Sum256([]byte(strings.Join(ids, "\x00")))
	return "w-" + hex.EncodeToString(sum[:16])
}

// Merged is what a turn answers.
type Merged struct {
	// Obligation is the strongest of the batch, Surface where that one is owed.
	Obligation string
	Surface    string
	Depth      int32
	// Title is a line about it.
	Title string
	// Text is what the seat reads: earlier deliveries as a digest, the newest in full.
	Text string
	// ReceiveAt is when the first of them was durable.
	ReceiveAt time.Time
}

// Merge makes one of a batch, which is of one conversation, oldest first and not empty. Nothing is shortened: what an earlier
// message says is left out only where the same sender says exactly the same again later.
func Merge(batch []Mail) Merged {
	newest := batch[len(batch)-1]
	m := Merged{Obligation: newest.Obligation, Surface: newest.Surface, Title: title(newest), ReceiveAt: batch[0].ReceiveAt}
	for _, one := range batch {
		// Of two that are owed alike, the one that says where is the narrower.
		stronger, narrower := strength(one.Obligation) > strength(m.Obligation), one.Obligation == m.Obligation && m.Surface == ""
		if stronger || narrower {
			m.Obligation, m.Surface = one.Obligation, one.Surface
		}
		m.Depth = max(m.Depth, one.Depth)
	}
	var text strings.Builder
	if len(batch) > 1 {
		fmt.Fprintf(&text, "Earlier in this conversation, oldest first (%d of %d messages):\n", len(batch)-1, len(batch))
		for i, one := range batch[:len(batch)-1] {
			body := one.Body
			if repeated(one, batch[i+1:]) {
				body = "(repeated word for word below)"
			}
			fmt.Fprintf(&text, "\n[%s] %s:\n%s\n", one.OccurAt.UTC().Format(time.RFC3339), who(one), body)
		}
		text.WriteString("\nThe newest message:\n\n")
	}
	text.WriteString(head(newest))
	text.WriteString("\n")
	text.WriteString(newest.Body)
	m.Text = text.String()
	return m
}

func repeated(one Mail, following []Mail) bool {
	return slices.ContainsFunc(following, func(next Mail) bool {
		return next.Body == one.Body && next.Sender.ID == one.Sender.ID
	})
}

func strength(obligation string) int {
	switch obligation {
	case "tool":
		return 2
	case "engine":
		return 1
	default:
		return 0
	}
}

func who(m Mail) string {
	name := m.Sender.Name
	if name == "" {
		name = m.Sender.ID
	}
	switch {
	case m.Sender.Seat != "":
		return fmt.Sprintf("%s (colleague `%s`)", name, m.Sender.Seat)
	case m.Sender.Bot:
		return name + " (a program)"
	case name == "":
		return "somebody"
	default:
		return name
	}
}

// head says what came, from whom and about what.
func head(m Mail) string {
	var lines []string
	lines = append(lines, fmt.Sprintf("From %s on %s (%s), %s.", who(m), m.Source, m.WakeReason, m.OccurAt.UTC().Format(time.RFC3339)))
	if m.Subject != "" {
		lines = append(lines, "About: "+m.Subject)
	}
	if m.URL != "" {
		lines = append(lines, "Where: "+m.URL)
	}
	return strings.Join(lines, "\n") + "\n"
}

func title(m Mail) string {
	if m.Subject != "" {
		return m.Subject
	}
	line, _, _ := strings.Cut(strings.TrimSpace(m.Body), "\n")
	const shown = 80
	if runes := []rune(line); len(runes) > shown {
		return string(runes[:shown-1]) + "…"
	}
	return line
}
