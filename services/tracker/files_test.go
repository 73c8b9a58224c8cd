package tracker_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/libs/rpc"
)

func write(ctx context.Context, t *testing.T, b bundle, path, content string) *trackerv1.WriteProjectFileResponse {
	t.Helper()
	res, err := b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Path: path, Content: content})
	require.NoError(t, err)
	return res
}

func TestAFileIsWrittenReadListedAndRemoved(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	first := write(ctx, t, b, "/notes/plan.md", "# Plan\n")
	require.Equal(t, "applied", first.GetOutcome())
	require.Equal(t, "OPS", first.GetProject())
	require.Equal(t, "notes/plan.md", first.GetPath())
	require.Equal(t, "text/markdown; charset=utf-8", first.GetContentType())
	require.EqualValues(t, 1, first.GetVersion())
	require.Equal(t, 7, int(first.GetSize()))
	require.Len(t, first.GetHash(), 64)

	read, err := b.client.ReadProjectFile(operator(t.Context()), &trackerv1.ReadProjectFileRequest{Path: "notes/plan.md", Project: "ops"})
	require.NoError(t, err)
	require.Equal(t, "# Plan\n", read.GetContent())
	require.Equal(t, "text", read.GetEncoding())
	require.False(t, read.GetTruncated())
	require.Equal(t, "ops-lead", read.GetFile().GetCreator())

	second, err := b.client.WriteProjectFile(operator(t.Context()), &trackerv1.WriteProjectFileRequest{
		Project: "OPS", Path: "notes/plan.md", Content: "# Plan B\n", IfVersion: proto.Int32(1),
	})
	require.NoError(t, err)
	require.EqualValues(t, 2, second.GetVersion())

	listed, err := b.client.ListProjectFiles(ctx, &trackerv1.ListProjectFilesRequest{MinPosition: second.GetPosition()})
	require.NoError(t, err)
	require.True(t, listed.GetComplete())
	require.Len(t, listed.GetFiles(), 1)
	require.Equal(t, "ops-lead", listed.GetFiles()[0].GetCreator())
	require.Equal(t, "ci", listed.GetFiles()[0].GetUpdater())

	removed, err := b.client.RemoveProjectFile(ctx, &trackerv1.RemoveProjectFileRequest{Path: "notes/plan.md", IfVersion: proto.Int32(2)})
	require.NoError(t, err)
	require.EqualValues(t, 3, removed.GetVersion())
	_, err = b.client.ReadProjectFile(ctx, &trackerv1.ReadProjectFileRequest{Path: "notes/plan.md"})
	refusal(t, err, fault.NotFound, "path")
	_, err = b.client.RemoveProjectFile(ctx, &trackerv1.RemoveProjectFileRequest{Path: "notes/plan.md"})
	refusal(t, err, fault.NotFound, "path")

	again := write(ctx, t, b, "notes/plan.md", "# Plan C\n")
	require.EqualValues(t, 4, again.GetVersion(), "a path's version grows for ever")
}

func TestIdenticalBytesAndTypeStoreNothing(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	write(ctx, t, b, "a.txt", "same")
	again := write(ctx, t, b, "a.txt", "same")
	require.Equal(t, "unchanged", again.GetOutcome())
	require.Empty(t, again.GetPosition())
	require.EqualValues(t, 1, again.GetVersion())
	typed, err := b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Path: "a.txt", Content: "same", ContentType: "text/x-other"})
	require.NoError(t, err)
	require.Equal(t, "applied", typed.GetOutcome())
	require.EqualValues(t, 2, typed.GetVersion())
	require.EqualValues(t, 1, objects(t, b), "what is not used is deleted")
}

func objects(t *testing.T, b bundle) int64 {
	t.Helper()
	var known, stored int64
	require.NoError(t, b.pool.QueryRow(t.Context(), `select (select count(*) from objects), (select count(distinct object_id) from object_chunks)`).Scan(&known, &stored))
	require.Equal(t, known, stored)
	return stored
}

func TestAFileOperationLandsOnceAndLeavesNoContentBehind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := rpc.WithOperation(seat(t.Context(), "ops-lead"), "op-file")
	answers := make([]*trackerv1.WriteProjectFileResponse, 16)
	var group sync.WaitGroup
	for n := range answers {
		group.Go(func() {
			res, err := b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Path: "a.txt", Content: "once"})
			if err == nil {
				answers[n] = res
			}
		})
	}
	group.Wait()
	for _, answer := range answers {
		require.NotNil(t, answer)
		require.Equal(t, answers[0].GetPosition(), answer.GetPosition())
	}
	require.EqualValues(t, 1, objects(t, b))
	_, err := b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Path: "a.txt", Content: "other"})
	refusal(t, err, fault.Conflict, "")
	require.EqualValues(t, 1, objects(t, b))
}

func TestOfManyWritersOfOneVersionOneWins(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	write(ctx, t, b, "a.txt", "v1")
	results := make([]error, 32)
	var group sync.WaitGroup
	for n := range results {
		group.Go(func() {
			_, results[n] = b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Path: "a.txt", Content: fmt.Sprint("writer ", n), IfVersion: proto.Int32(1)})
		})
	}
	group.Wait()
	won := 0
	for _, err := range results {
		if err == nil {
			won++
			continue
		}
		require.Equal(t, "2", refusal(t, err, fault.StaleVersion, "if_version").Facts["current_version"])
	}
	require.Equal(t, 1, won)
	require.EqualValues(t, 1, objects(t, b))
}

func TestIfVersionOnAMissingFileIsStale(t *testing.T) {
	t.Parallel()
	b := setup(t)
	_, err := b.client.WriteProjectFile(seat(t.Context(), "ops-lead"), &trackerv1.WriteProjectFileRequest{Path: "a.txt", Content: "x", IfVersion: proto.Int32(1)})
	refusal(t, err, fault.StaleVersion, "if_version")
}

func TestFilesOfAnUnknownProjectAreNotFoundAndNeverAnEmptyPage(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	_, err := b.client.ListProjectFiles(ctx, &trackerv1.ListProjectFilesRequest{Project: "NOPE"})
	refusal(t, err, fault.NotFound, "project")
	_, err = b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Project: "NOPE", Path: "a", Content: "x"})
	refusal(t, err, fault.NotFound, "project")
	_, err = b.client.ListProjectFiles(seat(t.Context(), "designer"), &trackerv1.ListProjectFilesRequest{})
	refusal(t, err, fault.Invalid, "project")
}

func TestAnArchivedProjectsFilesDoNotChange(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	write(ctx, t, b, "a.txt", "x")
	_, err := b.pool.Exec(t.Context(), `update projects set archived = true where key = 'OPS'`)
	require.NoError(t, err)
	_, err = b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Path: "a.txt", Content: "y"})
	refusal(t, err, fault.Invalid, "project")
	_, err = b.client.RemoveProjectFile(ctx, &trackerv1.RemoveProjectFileRequest{Path: "a.txt"})
	refusal(t, err, fault.Invalid, "project")
	read, err := b.client.ReadProjectFile(ctx, &trackerv1.ReadProjectFileRequest{Path: "a.txt"})
	require.NoError(t, err)
	require.Equal(t, "x", read.GetContent())
}

func TestFilesAreListedByPathInPagesAndByFolder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	for _, path := range []string{"b/2.md", "a.md", "b/1.md", "bb/1.md", "b.md", "ä/1.md", "b/c/d.md"} {
		write(ctx, t, b, path, path)
	}
	var all []string
	for after := ""; ; {
		page, err := b.client.ListProjectFiles(ctx, &trackerv1.ListProjectFilesRequest{After: after, Limit: 2})
		require.NoError(t, err)
		for _, f := range page.GetFiles() {
			all = append(all, f.GetPath())
		}
		if after = page.GetNext(); after == "" {
			break
		}
	}
	require.Equal(t, []string{"a.md", "b.md", "b/1.md", "b/2.md", "b/c/d.md", "bb/1.md", "ä/1.md"}, all)
	folder, err := b.client.ListProjectFiles(ctx, &trackerv1.ListProjectFilesRequest{Folder: "b"})
	require.NoError(t, err)
	require.EqualValues(t, 3, folder.GetCount(), "a folder is a prefix of whole segments")
	_, err = b.client.ListProjectFiles(ctx, &trackerv1.ListProjectFilesRequest{Limit: 1001})
	refusal(t, err, fault.Invalid, "limit")
}

func TestWhatIsNoTextIsShownAsBinaryWithANoteAndNoContent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	raw := []byte{0x89, 'P', 'N', 'G', 0, 0xff}
	_, err := b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Path: "a.png", Content: base64.StdEncoding.EncodeToString(raw), Encoding: "base64"})
	require.NoError(t, err)
	read, err := b.client.ReadProjectFile(ctx, &trackerv1.ReadProjectFileRequest{Path: "a.png"})
	require.NoError(t, err)
	require.Equal(t, "binary", read.GetEncoding())
	require.Empty(t, read.GetContent())
	require.NotEmpty(t, read.GetNote())
	read, err = b.client.ReadProjectFile(ctx, &trackerv1.ReadProjectFileRequest{Path: "a.png", Encoding: "base64"})
	require.NoError(t, err)
	require.Equal(t, base64.StdEncoding.EncodeToString(raw), read.GetContent())
	_, err = b.client.WriteProjectFile(ctx, &trackerv1.WriteProjectFileRequest{Path: "b.png", Content: "%%%", Encoding: "base64"})
	refusal(t, err, fault.Invalid, "content")
}

func TestALongTextIsReadInPagesThatEndBetweenCharacters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	text := strings.Repeat("Grüße 😀 aus Köln\n", 5000)
	write(ctx, t, b, "long.txt", text)
	var got strings.Builder
	for offset := 0.0; ; {
		page, err := b.client.ReadProjectFile(ctx, &trackerv1.ReadProjectFileRequest{Path: "long.txt", Offset: offset, MaxBytes: 4099})
		require.NoError(t, err)
		got.WriteString(page.GetContent())
		if !page.GetTruncated() {
			break
		}
		offset = page.GetNextOffset()
	}
	require.Equal(t, text, got.String())
	_, err := b.client.ReadProjectFile(ctx, &trackerv1.ReadProjectFileRequest{Path: "long.txt", Offset: 1 << 29})
	refusal(t, err, fault.Invalid, "offset")
	_, err = b.client.ReadProjectFile(ctx, &trackerv1.ReadProjectFileRequest{Path: "long.txt", MaxBytes: 49153})
	refusal(t, err, fault.Invalid, "max_bytes")
}

func TestContentThatTheStoreLostIsNeitherMissingNorEmpty(t *testing.T) {
	t.Parallel()
	b := setup(t)
	ctx := seat(t.Context(), "ops-lead")
	write(ctx, t, b, "a.txt", "x")
	_, err := b.pool.Exec(t.Context(), `delete from object_chunks`)
	require.NoError(t, err)
	_, err = b.client.ReadProjectFile(ctx, &trackerv1.ReadProjectFileRequest{Path: "a.txt"})
	require.Contains(t, refusal(t, err, fault.Unavailable, "").Message, "neither missing nor empty")
}

func TestAFileOfManyMegabytesGoesInAndOutInParts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	content := bytes.Repeat([]byte("0123456789abcdef"), 700_001) // a little over ten megabytes
	stream, err := b.client.UploadProjectFile(operator(t.Context()))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&trackerv1.UploadProjectFileRequest{Part: &trackerv1.UploadProjectFileRequest_Header{
		Header: &trackerv1.FileHeader{Project: "OPS", Path: "big.bin"},
	}}))
	for at := 0; at < len(content); at += 1 << 20 {
		require.NoError(t, stream.Send(&trackerv1.UploadProjectFileRequest{Part: &trackerv1.UploadProjectFileRequest_Content{
			Content: content[at:min(len(content), at+1<<20)],
		}}))
	}
	receipt, err := stream.CloseAndReceive()
	require.NoError(t, err)
	require.Equal(t, len(content), int(receipt.GetReceipt().GetSize()))

	down, err := b.client.DownloadProjectFile(operator(t.Context()), &trackerv1.DownloadProjectFileRequest{Project: "OPS", Path: "big.bin"})
	require.NoError(t, err)
	var got bytes.Buffer
	for {
		part, err := down.Receive()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got.Write(part.GetContent())
	}
	require.True(t, bytes.Equal(content, got.Bytes()))
	require.EqualValues(t, 1, objects(t, b))
}

func TestAnUploadThatIsNoFileLeavesNothingBehind(t *testing.T) {
	t.Parallel()
	b := setup(t)
	stream, err := b.client.UploadProjectFile(operator(t.Context()))
	require.NoError(t, err)
	require.NoError(t, stream.Send(&trackerv1.UploadProjectFileRequest{Part: &trackerv1.UploadProjectFileRequest_Content{Content: []byte("x")}}))
	_, err = stream.CloseAndReceive()
	refusal(t, err, fault.Invalid, "header")

	stream, err = b.client.UploadProjectFile(operator(t.Context()))
	require.NoError(t, err)
	header := &trackerv1.UploadProjectFileRequest{Part: &trackerv1.UploadProjectFileRequest_Header{Header: &trackerv1.FileHeader{Project: "OPS", Path: "a"}}}
	require.NoError(t, stream.Send(header))
	require.NoError(t, stream.Send(header))
	_, err = stream.CloseAndReceive()
	refusal(t, err, fault.Invalid, "header")
	require.EqualValues(t, 0, objects(t, b))
}
