package ops

import (
	"strconv"
	"strings"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Position is a place in one service's order of writes. Positions of two services, or of two epochs, do not compare.
type Position struct {
	// Service is the name as in its proto package.
	Service string
	// Epoch advances when the service's history is restored or restarted.
	Epoch int32
	// Sequence is larger for a later write.
	Sequence int64
}

// String answers the text form, "<service>@<epoch>:<sequence>".
func (p Position) String() string {
	return p.Service + "@" + strconv.FormatInt(int64(p.Epoch), 10) + ":" + strconv.FormatInt(p.Sequence, 10)
}

// ParsePosition reads the text form. Anything else, other spellings of the same numbers included, is refused as invalid.
func ParsePosition(text string) (Position, error) {
	service, place, _ := strings.Cut(text, "@")
	epoch, sequence, _ := strings.Cut(place, ":")
	p := Position{Service: service}
	e, err := strconv.ParseInt(epoch, 10, 32)
	if err != nil {
		return Position{}, badPosition(text)
	}
	p.Epoch = int32(e)
	if p.Sequence, err = strconv.ParseInt(sequence, 10, 64); err != nil {
		return Position{}, badPosition(text)
	}
	if service == "" || p.Epoch < 0 || p.Sequence < 0 || p.String() != text {
		return Position{}, badPosition(text)
	}
	return p, nil
}

func badPosition(text string) error {
	const shown = 80
	if len(text) > shown {
		return fault.New(fault.Invalid, "A position of %d bytes is too long; one looks like %s.",
			len(text), Position{"tracker", 1, 42})
	}
	return fault.New(fault.Invalid, "%q is not a position; one looks like %s.", text, Position{"tracker", 1, 42})
}
