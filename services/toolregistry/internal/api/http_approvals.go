package api

import (
	"net/http"
	"strconv"
	"time"

	toolregistryv1 "github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/toolregistry/v1/toolregistryv1connect"
)

// approvalRoutes adds `GET /approvals` and `POST /approvals/{id}/approve`, `/deny` and `/cancel`.
func approvalRoutes(mux *http.ServeMux, client toolregistryv1connect.ToolRegistryServiceClient) {
	mux.HandleFunc("GET /approvals", func(w http.ResponseWriter, r *http.Request) {
		limit, err := limitOf(r.URL.Query().Get("limit"))
		if err != nil {
			write(w, http.StatusBadRequest, errorJSON("invalid", "`limit` must be a whole number.", "limit"))
			return
		}
		answer, err := client.ListApprovals(withCredentials(r), &toolregistryv1.ListApprovalsRequest{
			State: r.URL.Query().Get("state"), Seat: r.URL.Query().Get("seat"), Limit: limit, Cursor: r.URL.Query().Get("cursor"),
		})
		if err != nil {
			refuse(w, err)
			return
		}
		list := approvalsJSON{Approvals: []approvalJSON{}, NextCursor: answer.GetNextCursor()}
		for _, a := range answer.GetApprovals() {
			list.Approvals = append(list.Approvals, approvalToJSON(a))
		}
		write(w, http.StatusOK, list)
	})
	decide := func(decision string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			note, ok := textOf(w, r, "note")
			if !ok {
				return
			}
			answer, err := client.DecideApproval(withCredentials(r), &toolregistryv1.DecideApprovalRequest{
				ApprovalId: r.PathValue("id"), Decision: decision, Note: note,
			})
			if err != nil {
				refuse(w, err)
				return
			}
			write(w, http.StatusOK, approvalToJSON(answer.GetApproval()))
		}
	}
	mux.HandleFunc("POST /approvals/{id}/approve", decide("approve"))
	mux.HandleFunc("POST /approvals/{id}/deny", decide("deny"))
	mux.HandleFunc("POST /approvals/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		if note, ok := textOf(w, r, "note"); !ok {
			return
		} else if note != "" {
			write(w, http.StatusBadRequest, errorJSON("invalid", "A question that is taken back carries no note.", "note"))
			return
		}
		answer, err := client.CancelApproval(withCredentials(r), &toolregistryv1.CancelApprovalRequest{ApprovalId: r.PathValue("id")})
		if err != nil {
			refuse(w, err)
			return
		}
		write(w, http.StatusOK, approvalToJSON(answer.GetApproval()))
	})
}

func limitOf(text string) (int32, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err
}

func errorJSON(class, message, field string) map[string]string {
	return map[string]string{"class": class, "message": message, "field": field, "reason": ""}
}

type approvalsJSON struct {
	Approvals  []approvalJSON `json:"approvals"`
	NextCursor string         `json:"next_cursor,omitempty"`
}

type approvalJSON struct {
	ApprovalID      string     `json:"approval_id"`
	State           string     `json:"state"`
	Seat            string     `json:"seat"`
	TurnID          string     `json:"turn_id"`
	ConversationKey string     `json:"conversation_key"`
	Tool            string     `json:"tool"`
	Source          string     `json:"source"`
	Arguments       string     `json:"arguments_json"`
	Rule            string     `json:"rule"`
	Reason          string     `json:"reason"`
	CreateTime      time.Time  `json:"create_time"`
	ExpireTime      time.Time  `json:"expire_time"`
	DecidedBy       string     `json:"decided_by,omitempty"`
	DecideTime      *time.Time `json:"decide_time,omitempty"`
	Note            string     `json:"note,omitempty"`
	CallStatus      string     `json:"call_status,omitempty"`
	Result          string     `json:"result,omitempty"`
	AuditID         string     `json:"audit_id,omitempty"`
	OperationID     string     `json:"operation_id"`
}

func approvalToJSON(a *toolregistryv1.Approval) approvalJSON {
	out := approvalJSON{
		ApprovalID: a.GetApprovalId(), State: a.GetState(), Seat: a.GetSeat(), TurnID: a.GetTurnId(), ConversationKey: a.GetConversationKey(),
		Tool: a.GetTool(), Source: a.GetSource(), Arguments: a.GetArgumentsJson(), Rule: a.GetRule(), Reason: a.GetReason(),
		CreateTime: a.GetCreateTime().AsTime(), ExpireTime: a.GetExpireTime().AsTime(), DecidedBy: a.GetDecidedBy(), Note: a.GetNote(),
		CallStatus: a.GetCallStatus(), Result: a.GetResult(), AuditID: a.GetAuditId(), OperationID: a.GetOperationId(),
	}
	if a.GetDecideTime() != nil {
		at := a.GetDecideTime().AsTime()
		out.DecideTime = &at
	}
	return out
}
