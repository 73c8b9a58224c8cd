package api

import (
	"context"
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/dispatch"
	"github.com/bullpenhq/bullpen/services/toolregistry/internal/surface"
)

// maxResultPage is how much of a result one page shows: a tool's answer has at most 64 KiB, escapes included.
const maxResultPage = 48 << 10

// ReadToolResult implements the tool of that name, which the registry runs itself. A seat reads its own calls and no others: for
// those it is told the same as for calls that nobody made.
func (h *Handler) ReadToolResult(ctx context.Context, req *toolregistryv1.ReadToolResultRequest) (*toolregistryv1.ReadToolResultResponse, error) {
	from, err := throughDoor(ctx)
	if err != nil {
		return nil, err
	}
	id, err := uuid.Parse(req.GetCallRef())
	if err != nil {
		return nil, noSuchCall()
	}
	record, ok := h.Audit.Unwritten(id)
	if !ok {
		if record, ok, err = h.Store.CallOfSeat(ctx, id, from.GetSeat()); err != nil {
			return nil, err
		}
	}
	if !ok || record.Seat != from.GetSeat() {
		return nil, noSuchCall()
	}
	text := record.Result
	if record.Source != surface.Builtin && !record.Restored {
		text = dispatch.Text(text) // what a model reads of a server's blocks
	}
	return resultPage(text, int(req.GetOffset()))
}

func noSuchCall() *fault.Error {
	return fault.New(fault.NotFound, "No call of yours has this `call_ref`; take it from the summary exactly as it stands there.").WithField("call_ref")
}

// resultPage answers the page of a text that begins at offset. It ends behind a line where one ends on it, and never inside of a
// character.
func resultPage(text string, offset int) (*toolregistryv1.ReadToolResultResponse, error) {
	size := len(text)
	switch {
	case offset > size:
		return nil, fault.New(fault.Invalid, "`offset` is %d, and the result has %d bytes.", offset, size).WithField("offset")
	case offset < size && !utf8.RuneStart(text[offset]):
		return nil, fault.New(fault.Invalid, "`offset` %d stands inside of a character; go on with `next_offset` as it was answered.", offset).
			WithField("offset")
	}
	response := &toolregistryv1.ReadToolResultResponse{Text: text[offset:], Size: int32(size)}
	if size-offset <= maxResultPage {
		return response, nil
	}
	end := offset + maxResultPage
	if line := strings.LastIndexByte(text[offset:end], '\n'); line >= 0 {
		end = offset + line + 1
	} else {
		for !utf8.RuneStart(text[end]) {
			end--
		}
	}
	response.Text, response.NextOffset = text[offset:end], new(int32(end))
	return response, nil
}
