package api

import (
	"google.golang.org/protobuf/proto"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

// maxAnswerBytes is how large an answer may be in the form that a model reads.
const maxAnswerBytes = 64 << 10

// fits refuses an answer that is too large to be read. It is never cut, as nobody could tell what is missing; advice says what to ask
// instead.
func fits(res proto.Message, advice string) error {
	size := jsonBytes(res)
	if size <= maxAnswerBytes {
		return nil
	}
	return fault.New(fault.Invalid, "the answer would be %d KiB long, and at most %d are answered: %s", (size+1023)>>10, maxAnswerBytes>>10, advice).
		WithReason("ANSWER_TOO_LARGE")
}

// jsonBytes is the size of a message in the form that a model reads.
func jsonBytes(m proto.Message) int {
	text, err := rpc.AnswerJSON(m)
	if err != nil {
		return maxAnswerBytes + 1 // nothing that comes from the store is no UTF-8
	}
	return len(text)
}
