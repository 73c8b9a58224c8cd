package api

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/google/uuid"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/company/internal/document"
	"github.com/bullpenhq/bullpen/services/company/internal/revision"
	"github.com/bullpenhq/bullpen/services/company/internal/splice"
	"github.com/bullpenhq/bullpen/services/company/internal/store"
	"github.com/bullpenhq/bullpen/services/company/internal/template"
)

// serversKey is where the document keeps its servers.
const serversKey = "mcp_servers"

// Reasons of refusals of an entry, beside those of revisions.
const (
	reasonSummary    = "SUMMARY_REQUIRED"
	reasonBody       = "INVALID_BODY"
	reasonIdentity   = "IDENTITY_MISMATCH"
	reasonNoEntity   = "NO_SUCH_ENTITY"
	reasonThere      = "ALREADY_CONFIGURED"
	reasonProblems   = "DOCUMENT_PROBLEMS"
	reasonNothing    = "NOTHING_TO_RESTORE"
	reasonUneditable = "NOT_EDITABLE"
)

// ListMcpServers implements the RPC.
func (h *Handler) ListMcpServers(ctx context.Context, _ *companyv1.ListMcpServersRequest) (*companyv1.ListMcpServersResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	r, entries, err := h.servers(ctx)
	if err != nil {
		return nil, err
	}
	out := &companyv1.ListMcpServersResponse{Revision: revisionToProto(r)}
	for _, entry := range entries {
		out.Servers = append(out.Servers, entryToProto(entry))
	}
	return out, nil
}

// GetMcpServer implements the RPC.
func (h *Handler) GetMcpServer(ctx context.Context, req *companyv1.GetMcpServerRequest) (*companyv1.GetMcpServerResponse, error) {
	if err := reader(ctx); err != nil {
		return nil, err
	}
	r, entries, err := h.servers(ctx)
	if err != nil {
		return nil, err
	}
	at := indexOf(entries, req.GetName())
	if at < 0 {
		return nil, noEntity(req.GetName(), "")
	}
	return &companyv1.GetMcpServerResponse{Server: entryToProto(entries[at]), Revision: revisionToProto(r)}, nil
}

// servers answers the entries of the active revision.
func (h *Handler) servers(ctx context.Context) (revision.Revision, []splice.Object, error) {
	r, ok, err := h.store.Active(ctx)
	if err != nil {
		return r, nil, err
	}
	if !ok {
		return r, nil, noActive()
	}
	text, err := h.store.Document(ctx, r.ID)
	if err != nil {
		return r, nil, err
	}
	entries, err := splice.List(text, serversKey)
	return r, entries, err
}

// PutMcpServer implements the RPC.
func (h *Handler) PutMcpServer(ctx context.Context, req *companyv1.PutMcpServerRequest) (*companyv1.PutMcpServerResponse, error) {
	p, err := writer(ctx)
	if err != nil {
		return nil, err
	}
	entry, err := entryOf(req)
	if err != nil {
		return nil, err
	}
	base, err := parseID(strings.Trim(req.GetIfMatch(), `"`), "if_match")
	if err != nil {
		return nil, err
	}
	if req.GetValidateOnly() {
		return h.tryServer(ctx, req, entry, base)
	}
	put := revision.Put{Summary: req.GetSummary(), By: byline(p), IfMatch: true, At: h.now()}
	out := &companyv1.PutMcpServerResponse{}
	_, err = h.store.Write(ctx, operation(ctx, "PutMcpServer", req), out, func(ctx context.Context, tx *store.Tx) error {
		active, text, ok, err := tx.LockActive(ctx)
		if err != nil {
			return err
		}
		if !ok {
			return noActive()
		}
		if put.Parent = active.ID; base != uuid.Nil {
			put.Parent = base
		}
		if _, err := put.Against(active); err != nil {
			return err
		}
		edited, problems, err := edit(text, req, entry)
		if err != nil {
			return err
		}
		if len(problems) > 0 {
			return refuseEntry(problems)
		}
		put.Document = edited
		r, unchanged, err := tx.Put(ctx, put)
		out.Revision, out.Unchanged, out.BaseRevisionId = revisionToProto(r), unchanged, active.ID.String()
		return err
	})
	if f, ok := fault.As(err); ok && f.Reason == revision.ReasonAdvanced {
		return nil, h.keepLosingEntry(ctx, put, req, entry, f)
	}
	if err != nil {
		return nil, err
	}
	h.wake()
	if warnings, err := h.warnings(ctx, entry); err == nil {
		out.Warnings = warnings // what was stored is stored, whether they could be worked out or not
	}
	return out, nil
}

// tryServer answers what a put would find, storing nothing.
func (h *Handler) tryServer(
	ctx context.Context, req *companyv1.PutMcpServerRequest, entry splice.Object, base uuid.UUID,
) (*companyv1.PutMcpServerResponse, error) {
	r, ok, err := h.store.Active(ctx)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, noActive()
	}
	if base != uuid.Nil {
		if _, err := (revision.Put{Parent: base}).Against(r); err != nil {
			return nil, err
		}
	}
	text, err := h.store.Document(ctx, r.ID)
	if err != nil {
		return nil, err
	}
	_, problems, err := edit(text, req, entry)
	if err != nil {
		return nil, err
	}
	out := &companyv1.PutMcpServerResponse{BaseRevisionId: r.ID.String()}
	for _, p := range problems {
		out.Problems = append(out.Problems, problemToProto(p))
	}
	out.Warnings, err = h.warnings(ctx, entry)
	return out, err
}

// edit answers the document with the entry in it, and what is wrong with the company that it makes.
func edit(text string, req *companyv1.PutMcpServerRequest, entry splice.Object) (string, []document.Problem, error) {
	entries, err := splice.List(text, serversKey)
	if err != nil {
		return "", nil, err
	}
	at := indexOf(entries, req.GetName())
	switch {
	case req.GetCreate() && slices.ContainsFunc(entries, func(e splice.Object) bool { return strings.EqualFold(nameOf(e), req.GetName()) }):
		return "", nil, fault.New(fault.Exists, "The server `%s` is configured already. Read it, and put it with If-Match to change it.", req.GetName()).
			WithReason(reasonThere).WithField("name")
	case !req.GetCreate() && at < 0:
		return "", nil, noEntity(req.GetName(), " To add it, say `create`; over HTTP, `If-None-Match: *`.")
	}
	var stored splice.Object
	if !req.GetCreate() {
		stored = entries[at]
	}
	restored, err := restore(entry, stored)
	if err != nil {
		return "", nil, err
	}
	var edited string
	if req.GetCreate() {
		edited, err = splice.Append(text, serversKey, restored)
	} else {
		edited, err = splice.Replace(text, serversKey, at, restored)
	}
	if err != nil {
		return "", nil, fault.New(fault.Conflict, "The active document is written in a form in which one server cannot be edited by itself. "+
			"Put the whole document instead.").WithReason(reasonUneditable).WithCause(err)
	}
	_, problems := document.Parse(edited)
	return edited, problems, nil
}

// restore puts the stored credentials in the places where [document.Masked] stands for them.
func restore(entry, stored splice.Object) (splice.Object, error) {
	kept := map[string]string{}
	stored.Texts(func(path, text string) string {
		kept[path] = text
		return text
	})
	var missing []string
	out := entry.Texts(func(path, text string) string {
		if text != document.Masked {
			return text
		}
		if _, ok := kept[path]; !ok {
			missing = append(missing, path)
		}
		return kept[path]
	})
	if len(missing) > 0 {
		return nil, fault.New(fault.Invalid, "`%s` is `%s`, which stands for a stored credential, and nothing is stored there. Write `${NAME}`.",
			missing[0], document.Masked).WithReason(reasonNothing).WithField(missing[0])
	}
	return out, nil
}

// keepLosingEntry stores the whole document that an entry was meant to make, when it was made for a revision that is no longer
// active: nothing its author wrote is gone. What could not have become active either is not kept.
func (h *Handler) keepLosingEntry(
	ctx context.Context, put revision.Put, req *companyv1.PutMcpServerRequest, entry splice.Object, refusal *fault.Error,
) error {
	if _, ok, err := h.store.Revision(ctx, put.Parent); err != nil || !ok {
		return refusal
	}
	text, err := h.store.Document(ctx, put.Parent)
	if err != nil {
		return refusal
	}
	edited, problems, err := edit(text, req, entry)
	if err != nil || len(problems) > 0 {
		return refusal
	}
	put.Document = edited
	return h.keepLoser(ctx, put, refusal)
}

// entryOf reads the entry of a request and settles its name.
func entryOf(req *companyv1.PutMcpServerRequest) (splice.Object, error) {
	if strings.TrimSpace(req.GetSummary()) == "" && !req.GetValidateOnly() {
		return nil, fault.New(fault.Invalid, "`summary` is required: say in a line why the server changes.").
			WithReason(reasonSummary).WithField("summary")
	}
	entry, err := splice.ParseObject(req.GetEntryJson())
	if err != nil {
		return nil, fault.New(fault.Invalid, "The entry %s.", err).WithReason(reasonBody).WithField("entry_json")
	}
	if !slices.ContainsFunc(entry, func(f splice.Field) bool { return f.Key == "name" }) {
		return append(splice.Object{{Key: "name", Value: req.GetName()}}, entry...), nil
	}
	if name, ok := entry.Text("name"); !ok || name != req.GetName() {
		return nil, fault.New(fault.Invalid, "The entry names another server than the address, which is `%s`. A server is not renamed; "+
			"put one with the new name.", req.GetName()).WithReason(reasonIdentity).WithField("name")
	}
	return entry, nil
}

// refuseEntry answers problems as the document's, but for keys that no entry has: those are the body's fault.
func refuseEntry(problems []document.Problem) error {
	f := refuseProblems(problems)
	for _, p := range problems {
		if p.Kind == document.KindUnknownKey && strings.HasPrefix(p.Path, serversKey+"[") {
			return f.WithReason(reasonBody).WithField("entry_json")
		}
	}
	return f
}

// warnings answers what is in order and yet may not do what is meant.
func (h *Handler) warnings(ctx context.Context, entry splice.Object) ([]string, error) {
	var out, names []string
	entry.Texts(func(_, text string) string {
		if t, err := template.Parse(text); err == nil {
			for _, name := range t.Names() {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
		return text
	})
	kept, err := h.store.Sealed(ctx, names)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if _, sealed := kept[name]; !sealed && (!served(name) || h.getenv(name) == "") {
			out = append(out, fmt.Sprintf("No value is known for ${%s} yet; the server is not started before one is.", name))
		}
	}
	c, err := h.companies.active(ctx)
	if err != nil {
		return nil, err
	}
	name := nameOf(entry)
	declares := func(s *companyv1.Seat) bool { return s.GetMcpEnv()[name] != nil }
	for _, f := range entry {
		if f.Key == "shared" && f.Value == false && !slices.ContainsFunc(c.message.GetSeats(), declares) {
			out = append(out, "No seat declares credentials for it under mcp_env, so no seat has it yet.")
		}
	}
	return out, nil
}

func entryToProto(entry splice.Object) *companyv1.McpServerEntry {
	return &companyv1.McpServerEntry{Name: nameOf(entry), EntryJson: entry.Texts(document.MaskServer).JSON()}
}

func nameOf(entry splice.Object) string {
	name, _ := entry.Text("name")
	return name
}

func indexOf(entries []splice.Object, name string) int {
	return slices.IndexFunc(entries, func(e splice.Object) bool { return nameOf(e) == name })
}

// noEntity refuses a name that no server has; remedy is a sentence more.
func noEntity(name, remedy string) *fault.Error {
	return fault.New(fault.NotFound, "The active revision configures no server `%s`.%s", name, remedy).
		WithReason(reasonNoEntity).WithField("name")
}

// noActive refuses what changes a part of a company while there is none.
func noActive() *fault.Error {
	return fault.New(fault.Conflict, "No company is active yet, so it has no parts to read or change. Put a document first.").
		WithReason(revision.ReasonNone)
}
