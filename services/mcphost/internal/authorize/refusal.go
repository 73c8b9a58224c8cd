package authorize

import (
	"errors"
	"fmt"
	"strings"
)

// Refused is why a request could not be authorised. Its text is a half sentence, and holds no secret.
type Refused struct {
	// Consent says that only an operator can mend it.
	Consent bool
	text    string
	cause   error
}

func refuse(format string, args ...any) *Refused { return &Refused{text: fmt.Sprintf(format, args...)} }

func (r *Refused) because(cause error) *Refused {
	r.cause = cause
	return r
}

// Error answers the half sentence.
func (r *Refused) Error() string { return r.text }

// Unwrap answers what broke, for those who ask whether it was the caller's own end.
func (r *Refused) Unwrap() error { return r.cause }

// TurnedAway marks that the server did not look at the request.
func (r *Refused) TurnedAway() {}

// consentNeeded is the refusal that an operator ends.
func consentNeeded() *Refused {
	return &Refused{Consent: true, text: "an operator must consent to its use: open its authorization_url in a browser"}
}

// asked reports whether an error says that an operator was asked.
func asked(err error) bool {
	var refused *Refused
	return errors.As(err, &refused) && refused.Consent
}

// quoted answers a stranger's word for a text of ours: printable, and left out when it is longer than a line.
func quoted(word string) string {
	const longest = 200
	printable := strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, word)
	if len(printable) > longest {
		return fmt.Sprintf("(%d bytes)", len(word))
	}
	return fmt.Sprintf("%q", printable)
}
