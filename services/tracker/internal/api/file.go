package api

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/google/uuid"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/file"
	"github.com/bullpenhq/bullpen/services/tracker/internal/item"
	"github.com/bullpenhq/bullpen/services/tracker/internal/org"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

const defaultFiles = 200

// ListProjectFiles implements the contract.
func (h *Handler) ListProjectFiles(ctx context.Context, req *trackerv1.ListProjectFilesRequest) (*trackerv1.ListProjectFilesResponse, error) {
	project, err := h.fileProject(ctx, req.GetProject(), req.GetMinPosition())
	if err != nil {
		return nil, err
	}
	folder, err := file.CleanFolder("folder", req.GetFolder())
	if err != nil {
		return nil, err
	}
	limit := int(req.GetLimit())
	if limit == 0 {
		limit = defaultFiles
	}
	files, more, err := h.Store.ListFiles(ctx, project, folder, strings.TrimPrefix(req.GetAfter(), "/"), limit)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.ListProjectFilesResponse{Project: project, Count: int32(len(files)), ReadLevel: "linearizable", Complete: true}
	for _, f := range files {
		res.Files = append(res.Files, convert.File(f))
	}
	if more {
		res.Next = files[len(files)-1].Path
	}
	return res, fits(res, "give a smaller limit, or a folder")
}

// ReadProjectFile implements the contract.
func (h *Handler) ReadProjectFile(ctx context.Context, req *trackerv1.ReadProjectFileRequest) (*trackerv1.ReadProjectFileResponse, error) {
	project, err := h.fileProject(ctx, req.GetProject(), req.GetMinPosition())
	if err != nil {
		return nil, err
	}
	path, err := file.CleanPath("path", req.GetPath())
	if err != nil {
		return nil, err
	}
	offset := int64(req.GetOffset())
	if float64(offset) != req.GetOffset() {
		return nil, fault.New(fault.Invalid, "offset must be a whole number, as next_offset says it").WithField("offset")
	}
	limit := int(req.GetMaxBytes())
	if limit == 0 {
		limit = file.PageBytes
	}
	f, raw, err := h.content(ctx, project, path, offset, limit)
	if err != nil {
		return nil, err
	}
	res := &trackerv1.ReadProjectFileResponse{Project: project, File: convert.File(f), Offset: float64(offset), Encoding: orDefault(req.GetEncoding(), "text")}
	var page file.Page
	if res.GetEncoding() == "base64" {
		page = file.Bytes(raw, offset, f.Size, limit)
		res.Content = base64.StdEncoding.EncodeToString(page.Content)
	} else {
		page = file.Text(raw, offset, f.Size, limit)
		res.Content = string(page.Content)
	}
	if page.Binary {
		res.Encoding, res.Note = "binary", "this is no text: read it with encoding base64"
	}
	res.NextOffset, res.Truncated = float64(page.Next), page.Next != 0
	return res, fits(res, "give a smaller max_bytes")
}

// content answers a file and the bytes of a page of it, with the rest of a character that begins in it. A file that is rewritten in
// between is read again: each of its contents is whole.
func (h *Handler) content(ctx context.Context, project, path string, offset int64, limit int) (*file.File, []byte, error) {
	for again := false; ; again = true {
		f, err := h.Store.FileByPath(ctx, project, path)
		if err != nil {
			return nil, nil, err
		}
		if offset > f.Size {
			return nil, nil, fault.New(fault.Invalid, "offset is %d and the file has %d bytes: begin at 0, or at a next_offset of this version", offset, f.Size).WithField("offset")
		}
		if offset == f.Size {
			return f, nil, nil
		}
		raw, err := h.Objects.Read(ctx, *f.Object, offset, limit+3)
		if err == nil {
			return f, raw, nil
		}
		if now, lost := h.Store.FileByPath(ctx, project, path); lost == nil && now.Version != f.Version && !again {
			continue
		}
		return nil, nil, unreadable(path, err)
	}
}

func unreadable(path string, err error) error {
	if fault.ClassOf(err) == fault.Unavailable {
		if _, claimed := fault.As(err); claimed {
			return err
		}
	}
	return fault.New(fault.Unavailable, "the content of %s could not be read now; the file is neither missing nor empty: try again", path).WithCause(err)
}

// WriteProjectFile implements the contract.
func (h *Handler) WriteProjectFile(ctx context.Context, req *trackerv1.WriteProjectFileRequest) (*trackerv1.WriteProjectFileResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	project, err := projectOr(o, by, req.GetProject())
	if err != nil {
		return nil, err
	}
	w, err := fileWrite(req.GetPath(), store.FileWrite{Project: project, ContentType: req.GetContentType(), IfVersion: req.IfVersion})
	if err != nil {
		return nil, err
	}
	content := []byte(req.GetContent())
	if req.GetEncoding() == "base64" {
		if content, err = base64.StdEncoding.DecodeString(req.GetContent()); err != nil {
			return nil, fault.New(fault.Invalid, "content is not base64, as encoding says it is").WithField("content")
		}
	}
	sum := sha256.Sum256(content)
	w.Hash, w.Size, w.By = sum[:], int64(len(content)), store.Act{By: by, At: h.now(), Org: o}
	if w.Object, err = h.Store.BeginObject(ctx); err != nil {
		return nil, err
	}
	if err := h.Objects.Put(ctx, w.Object, bytes.NewReader(content), w.Size); err != nil {
		h.drop(ctx, w.Object)
		return nil, notStored(w.Path, err)
	}
	return h.writeFile(ctx, operation(ctx, "write_project_file", req), w)
}

// writeFile makes a stored object a file's content and deletes what is not used any more.
func (h *Handler) writeFile(ctx context.Context, op ops.Operation, w store.FileWrite) (*trackerv1.WriteProjectFileResponse, error) {
	res := &trackerv1.WriteProjectFileResponse{}
	used, dropped, err := h.Store.WriteFile(ctx, op, res, w, func(f *file.File, at ops.Position) {
		proto.Reset(res)
		res.Outcome, res.Version, res.Project, res.Path = unchanged, f.Version, f.Project, f.Path
		res.Size, res.Hash, res.ContentType = float64(f.Size), convert.Hash(f.Hash), f.ContentType
		if at != (ops.Position{}) {
			res.Outcome, res.Position = applied, at.String()
		}
	})
	switch f, ok := fault.As(err); {
	case err != nil && ok && f.Outcome == "unknown":
		return nil, err // the object may be the file's content now: the sweep decides
	case !used:
		h.drop(ctx, w.Object)
	}
	if err != nil {
		return nil, err
	}
	if dropped != nil {
		h.drop(ctx, *dropped)
	}
	return res, nil
}

func notStored(path string, err error) error {
	if _, claimed := fault.As(err); claimed {
		return err
	}
	return fault.New(fault.Unavailable, "the content of %s could not be stored, so nothing has changed: try again", path).WithCause(err)
}

// RemoveProjectFile implements the contract.
func (h *Handler) RemoveProjectFile(ctx context.Context, req *trackerv1.RemoveProjectFileRequest) (*trackerv1.RemoveProjectFileResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	project, err := projectOr(o, by, req.GetProject())
	if err != nil {
		return nil, err
	}
	path, err := file.CleanPath("path", req.GetPath())
	if err != nil {
		return nil, err
	}
	res := &trackerv1.RemoveProjectFileResponse{}
	dropped, err := h.Store.RemoveFile(ctx, operation(ctx, "remove_project_file", req), res, project, path, req.IfVersion, store.Act{By: by, At: h.now(), Org: o},
		func(f *file.File, at ops.Position) {
			res.Outcome, res.Position, res.Version, res.Project, res.Path = applied, at.String(), f.Version, f.Project, f.Path
		})
	if err != nil {
		return nil, err
	}
	if dropped != nil {
		h.drop(ctx, *dropped)
	}
	return res, nil
}

// drop deletes an object that nothing uses; what cannot be deleted now is left to the sweep.
func (h *Handler) drop(ctx context.Context, id uuid.UUID) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout)
	defer cancel()
	if err := h.Store.DropObject(ctx, id); err != nil {
		return
	}
	if err := h.Objects.Delete(ctx, id); err == nil {
		_ = h.Store.ForgetObject(ctx, id)
	}
}

// fileWrite completes the write that a request asks for, all but its content.
func fileWrite(path string, w store.FileWrite) (store.FileWrite, error) {
	var err error
	if w.Path, err = file.CleanPath("path", path); err != nil {
		return w, err
	}
	if w.ContentType == "" {
		w.ContentType = file.TypeOf(w.Path)
	}
	return w, file.CheckType("content_type", w.ContentType)
}

// fileProject answers the project of a read and whether it is there at all: an unknown one is no empty one.
func (h *Handler) fileProject(ctx context.Context, key, minPosition string) (string, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return "", err
	}
	if err := h.notBefore(ctx, minPosition); err != nil {
		return "", err
	}
	project, err := projectOr(o, by, key)
	if err != nil {
		return "", err
	}
	return project, h.Store.HasProject(ctx, project)
}

// projectOr answers the key of the named project, or of the caller's own.
func projectOr(o *org.Org, by item.Actor, key string) (string, error) {
	if key == "" {
		return o.ProjectOf(by.Seat)
	}
	return strings.ToUpper(key), nil
}
