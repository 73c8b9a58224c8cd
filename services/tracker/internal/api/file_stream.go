package api

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"time"

	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1/trackerv1connect"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/ops"
	"github.com/bullpenhq/bullpen/libs/rpc"
	"github.com/bullpenhq/bullpen/services/tracker/internal/convert"
	"github.com/bullpenhq/bullpen/services/tracker/internal/file"
	"github.com/bullpenhq/bullpen/services/tracker/internal/store"
)

const (
	// dropTimeout bounds the deletion of what is not used any more, for which nobody waits longer.
	dropTimeout = 5 * time.Second
	// downloadBytes is how much of a file one message carries.
	downloadBytes = 256 << 10
)

// UploadProjectFile implements the contract.
func (h *Handler) UploadProjectFile(
	ctx context.Context, stream trackerv1connect.TrackerServiceUploadProjectFileServerStream,
) (*trackerv1.UploadProjectFileResponse, error) {
	o, by, err := h.caller(ctx)
	if err != nil {
		return nil, err
	}
	first, err := stream.Receive()
	if err != nil {
		return nil, err
	}
	header := first.GetHeader()
	if header == nil {
		return nil, fault.New(fault.Invalid, "the first part must be header, which says what the file is").WithField("header")
	}
	project, err := projectOr(o, by, header.GetProject())
	if err != nil {
		return nil, err
	}
	w, err := fileWrite(header.GetPath(), store.FileWrite{Project: project, ContentType: header.GetContentType(), IfVersion: header.IfVersion})
	if err != nil {
		return nil, err
	}
	if err := h.Store.HasProject(ctx, project); err != nil {
		return nil, err
	}
	if w.Object, err = h.Store.BeginObject(ctx); err != nil {
		return nil, err
	}
	sum := sha256.New()
	parts := &parts{stream: stream, sum: sum}
	if err := h.Objects.Put(ctx, w.Object, parts, -1); err != nil {
		h.drop(ctx, w.Object)
		if parts.err != nil {
			return nil, parts.err
		}
		return nil, notStored(w.Path, err)
	}
	w.Hash, w.Size, w.By = sum.Sum(nil), parts.size, store.Act{By: by, At: h.now(), Org: o}
	receipt, err := h.writeFile(ctx, upload(ctx, header, w.Hash), w)
	if err != nil {
		return nil, err
	}
	return &trackerv1.UploadProjectFileResponse{Receipt: receipt}, nil
}

// upload names the write that an upload is: what it is and what it holds.
func upload(ctx context.Context, header *trackerv1.FileHeader, hash []byte) ops.Operation {
	digest := sha256.Sum256(append(ops.Digest(proto.Message(header)), hash...))
	return ops.Operation{ID: rpc.OperationID(ctx), Caller: rpc.Caller(ctx), Tool: "upload_project_file", Digest: digest[:]}
}

// parts reads the content that a stream brings, up to what a file may hold.
type parts struct {
	stream trackerv1connect.TrackerServiceUploadProjectFileServerStream
	sum    hash.Hash
	size   int64
	rest   []byte
	// err is why it ended before its end.
	err error
}

// Read implements [io.Reader].
func (p *parts) Read(into []byte) (int, error) {
	for len(p.rest) == 0 {
		if p.err != nil {
			return 0, p.err
		}
		part, err := p.stream.Receive()
		switch {
		case errors.Is(err, io.EOF):
			return 0, io.EOF
		case err != nil:
			p.err = err
		case part.GetHeader() != nil:
			p.err = fault.New(fault.Invalid, "header comes once, before any content").WithField("header")
		case p.size+int64(len(part.GetContent())) > file.MaxSize:
			p.err = fault.New(fault.Invalid, "content is more than %d bytes, which is as large as a file may be", int64(file.MaxSize)).WithField("content")
		default:
			p.rest = part.GetContent()
			p.size += int64(len(p.rest))
			_, _ = p.sum.Write(p.rest) // never fails
		}
	}
	n := copy(into, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// DownloadProjectFile implements the contract.
func (h *Handler) DownloadProjectFile(
	ctx context.Context, req *trackerv1.DownloadProjectFileRequest, stream trackerv1connect.TrackerServiceDownloadProjectFileServerStream,
) error {
	project, err := h.fileProject(ctx, req.GetProject(), "")
	if err != nil {
		return err
	}
	path, err := file.CleanPath("path", req.GetPath())
	if err != nil {
		return err
	}
	f, err := h.Store.FileByPath(ctx, project, path)
	if err != nil {
		return err
	}
	if err := stream.Send(&trackerv1.DownloadProjectFileResponse{Part: &trackerv1.DownloadProjectFileResponse_File{File: convert.File(f)}}); err != nil {
		return err
	}
	for offset := int64(0); offset < f.Size; {
		content, err := h.Objects.Read(ctx, *f.Object, offset, downloadBytes)
		if err != nil {
			return unreadable(path, err)
		}
		if len(content) == 0 {
			return fault.New(fault.Unavailable, "the content of %s ends after %d bytes of %d: do not use what came", path, offset, f.Size)
		}
		offset += int64(len(content))
		if err := stream.Send(&trackerv1.DownloadProjectFileResponse{Part: &trackerv1.DownloadProjectFileResponse_Content{Content: content}}); err != nil {
			return err
		}
	}
	return nil
}
