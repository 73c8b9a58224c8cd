package fleet

import (
	"fmt"
	"regexp"
)

// maxReason bounds a reason, in bytes: it travels in every answer and event.
const maxReason = 500

// reasonOf answers why an instance is down, in whole lines: the cause, and the first lines of standard error that look like the
// reason, or the last ones when none does. What does not fit is counted; the log has all of it.
func reasonOf(cause string, tail []string) string {
	lines := telling(tail)
	const room = 60 // for the count
	if len(cause) > maxReason-room {
		return fmt.Sprintf("the reason takes %d bytes: see mcp_server_failed in the log", len(cause))
	}
	reason := cause
	left := len(lines)
	for _, line := range lines {
		if len(reason)+1+len(line) > maxReason-room {
			break
		}
		reason += "\n" + line
		left--
	}
	if left > 0 {
		reason += fmt.Sprintf("\n(%d more lines in the log)", left)
	}
	return reason
}

// telling picks the lines that a person would read first.
func telling(tail []string) []string {
	trouble := regexp.MustCompile(`(?i)\b(errors?|fatal|fail(ed|ure)?|cannot|can't|not found|invalid|denied|unauthori[sz]ed|forbidden|missing|refused|required|panic|traceback|unable)\b|Error:`)
	noise := regexp.MustCompile(`(?i)^(at |node:internal|npm (warn|notice)|\^+$|Node\.js v|throw err)`)
	var useful, clean []string
	for _, line := range tail {
		if noise.MatchString(line) {
			continue
		}
		clean = append(clean, line)
		if trouble.MatchString(line) {
			useful = append(useful, line)
		}
	}
	if len(useful) > 0 {
		return useful
	}
	const last = 5
	return clean[max(0, len(clean)-last):]
}
