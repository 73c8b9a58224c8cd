package act

import (
	"encoding/json"
	"net/http"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// refusal is every answer but the good one.
type refusal struct {
	status     int
	retryAfter string

	Error  string `json:"error"`
	Tool   string `json:"tool"`
	Detail string `json:"detail"`
	// Hint is what to do about a token that is nobody's.
	Hint string `json:"hint,omitempty"`
	// Outcome is `unknown` when the write may have landed, and then the same request may be sent again. Otherwise nothing was written.
	Outcome string `json:"outcome,omitempty"`
}

func (r refusal) write(w http.ResponseWriter, tool string) {
	r.Tool = tool
	if r.retryAfter != "" {
		w.Header().Set("Retry-After", r.retryAfter)
	}
	if r.status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Bearer realm="bullpen", error="invalid_token"`)
	}
	w.WriteHeader(r.status)
	_ = json.NewEncoder(w).Encode(r)
}

// refusedBy writes a refused call. What nobody claimed as the caller's is the server's.
func refusedBy(err error) *refusal {
	f, ok := fault.As(err)
	if !ok {
		return broken()
	}
	return &refusal{status: statusOf(f.Class), Error: string(f.Class), Detail: f.Message, Outcome: f.Outcome}
}

func broken() *refusal {
	return &refusal{
		status: http.StatusInternalServerError, Error: "internal_error", Outcome: fault.OutcomeUnknown,
		Detail: "The request failed here, and may have landed; sending the very same request again is safe.",
	}
}

// statusOf is what HTTP says of a class.
func statusOf(class fault.Class) int {
	switch class {
	case fault.Invalid:
		return http.StatusUnprocessableEntity
	case fault.NotFound:
		return http.StatusNotFound
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.StaleVersion, fault.Conflict, fault.Exists, fault.AlreadyAnswered, fault.ReassignmentBudget, fault.InboxFull,
		fault.NotRunning, fault.SteerUnsupported, fault.BudgetExhausted, fault.LoopDetected:
		return http.StatusConflict
	case fault.Unavailable:
		return http.StatusServiceUnavailable
	default:
		return http.StatusServiceUnavailable
	}
}
