// Package timeline draws a turn's journal as a text that a person can read from top to bottom: what woke the seat, each model
// answer, each call with its outcome and duration, and how it ended.
//
// It only draws. Long texts are shown by their first line with the number of lines that follow: the journal keeps them whole,
// and `--json` prints it.
package timeline

import (
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/timestamppb"

	turnv1 "github.com/bullpenhq/bullpen/gen/bullpen/turn/v1"
)

const (
	// previewRunes is how much of one line is drawn before it is said that there is more.
	previewRunes = 96
	// spareRunes is what a line may have beyond that and still be drawn whole: saying that there is more takes as much.
	spareRunes = 24
)

// Write draws the turn. Times are shown in zone; every later one as the distance from the first.
func Write(w io.Writer, response *turnv1.GetTurnResponse, zone *time.Location) error {
	d := &drawing{turn: response.GetTurn(), zone: zone}
	d.head()
	for _, mail := range response.GetMail() {
		d.mail(mail)
	}
	d.row(d.turn.GetStartTime(), "", "turn started"+resumed(d.turn.GetResumes()))
	for _, round := range response.GetRounds() {
		d.round(round)
	}
	d.end()
	_, err := io.WriteString(w, d.text.String())
	return err
}

type drawing struct {
	text strings.Builder
	turn *turnv1.Turn
	zone *time.Location
	from time.Time
}

func (d *drawing) head() {
	turn := d.turn
	fmt.Fprintf(&d.text, "turn %s  %s", turn.GetTurnId(), turn.GetSeat())
	if turn.GetState() == "done" {
		fmt.Fprintf(&d.text, "  %s in %s\n", turn.GetOutcome(), duration(turn.GetStartTime(), turn.GetEndTime()))
	} else {
		d.text.WriteString("  running\n")
	}
	fmt.Fprintf(&d.text, "  answers   %s\n", turn.GetConversationKey())
	if turn.GetTitle() != "" {
		fmt.Fprintf(&d.text, "  about     %s\n", preview(turn.GetTitle()))
	}
	fmt.Fprintf(&d.text, "  owes      %s\n", owes(turn))
	fmt.Fprintf(&d.text, "  spent     %s, %s, %d tokens in, %d out%s\n\n", count(turn.GetRoundCount(), "round"),
		count(turn.GetCallCount(), "call"), turn.GetInputTokens(), turn.GetOutputTokens(), scripted(turn))
}

func (d *drawing) mail(mail *turnv1.Mail) {
	d.row(mail.GetReceiveTime(), "", fmt.Sprintf("%s from %s: %s", reason(mail), mail.GetSender(), preview(mail.GetBody())))
}

func (d *drawing) round(round *turnv1.Round) {
	head := fmt.Sprintf("%s answered in %s", round.GetModel(), duration(round.GetStartTime(), round.GetEndTime()))
	if round.GetInputTokens()+round.GetOutputTokens() > 0 {
		head += fmt.Sprintf(", %d tokens in, %d out", round.GetInputTokens(), round.GetOutputTokens())
	}
	d.row(round.GetEndTime(), fmt.Sprintf("#%d", round.GetNumber()), head)
	if round.GetText() != "" {
		d.note("“" + preview(round.GetText()) + "”")
	}
	for _, call := range round.GetCalls() {
		d.call(call)
	}
}

func (d *drawing) call(call *turnv1.Call) {
	at := call.GetStartTime()
	d.row(at, "", fmt.Sprintf("  %s(%s)", call.GetTool(), preview(call.GetArgumentsJson())))
	end := "    " + verdict(call)
	made := call.GetState() != "parked"
	if made && call.GetEndTime() != nil && at != nil {
		end += " in " + duration(at, call.GetEndTime())
	}
	if made && call.GetSource() != "" && call.GetSource() != "builtin" {
		end += ", by " + call.GetSource()
	}
	switch {
	case call.GetDelivered() == "":
	case call.GetOutcome() == "pending":
		end += ", on its way to " + call.GetDelivered()
	default:
		end += ", reached " + call.GetDelivered()
	}
	d.note(end)
	if call.GetState() == "failed" || call.GetState() == "unknown" || call.GetState() == "parked" {
		d.note("    " + preview(call.GetResult()))
	}
}

func (d *drawing) end() {
	turn := d.turn
	if turn.GetState() != "done" {
		return
	}
	line := "turn ended: " + turn.GetOutcome()
	if turn.GetErrorKind() != "" {
		line += " (" + turn.GetErrorKind() + ")"
	}
	d.row(turn.GetEndTime(), "", line)
	if turn.GetSummary() != "" {
		d.note("“" + preview(turn.GetSummary()) + "”")
	}
}

// row draws one moment. The first one is drawn as a time of day, the others as their distance from it.
func (d *drawing) row(at *timestamppb.Timestamp, mark, text string) {
	when := ""
	if at != nil {
		moment := at.AsTime()
		if d.from.IsZero() {
			d.from = moment
			when = moment.In(d.zone).Format("15:04:05.000")
		} else {
			when = fmt.Sprintf("+%.3f s", moment.Sub(d.from).Seconds())
		}
	}
	fmt.Fprintf(&d.text, "  %-12s  %-3s %s\n", when, mark, text)
}

func (d *drawing) note(text string) {
	fmt.Fprintf(&d.text, "  %-12s  %-3s %s\n", "", "", text)
}

// verdict says in words how a call ended.
func verdict(call *turnv1.Call) string {
	switch call.GetState() {
	case "done":
		if call.GetOutcome() != "" {
			return call.GetOutcome()
		}
		return "ok"
	case "failed":
		if call.GetRefusalClass() != "" {
			return "refused (" + call.GetRefusalClass() + ")"
		}
		return "failed"
	case "parked":
		return "not made: it waits for a person"
	default:
		return call.GetState()
	}
}

func owes(turn *turnv1.Turn) string {
	switch turn.GetObligation() {
	case "tool":
		if turn.GetSurface() == "" {
			return "an answer"
		}
		return "an answer on " + turn.GetSurface()
	case "engine":
		return "its last text"
	default:
		return "nobody an answer"
	}
}

func reason(mail *turnv1.Mail) string {
	return strings.ReplaceAll(mail.GetWakeReason(), "_", " ")
}

func resumed(times int32) string {
	switch times {
	case 0:
		return ""
	case 1:
		return ", resumed once after a crash"
	default:
		return fmt.Sprintf(", resumed %d times after crashes", times)
	}
}

func scripted(turn *turnv1.Turn) string {
	if turn.GetScripted() {
		return " (scripted: no model was asked)"
	}
	return ""
}

func count(n int32, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func duration(from, to *timestamppb.Timestamp) string {
	if from == nil || to == nil {
		return "?"
	}
	d := to.AsTime().Sub(from.AsTime())
	if d < time.Second {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%.2f s", d.Seconds())
}

// preview is the first line, and how much follows it.
func preview(text string) string {
	text = strings.TrimSpace(text)
	first, rest, more := strings.Cut(text, "\n")
	cut := ""
	if utf8.RuneCountInString(first) > previewRunes+spareRunes {
		runes := []rune(first)
		cut = fmt.Sprintf("… (%d characters more)", len(runes)-previewRunes)
		first = string(runes[:previewRunes])
	}
	if more && strings.TrimSpace(rest) != "" {
		cut += fmt.Sprintf(" (+%s)", count(int32(strings.Count(rest, "\n")+1), "line"))
	}
	return first + cut
}
