package convert

import (
	"encoding/hex"

	"google.golang.org/protobuf/types/known/timestamppb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/services/tracker/internal/file"
)

// File answers what is known of a file.
func File(f *file.File) *trackerv1.ProjectFile {
	return &trackerv1.ProjectFile{
		Path: f.Path, ContentType: f.ContentType, Hash: Hash(f.Hash), Size: float64(f.Size), Version: f.Version,
		Creator: f.CreatedBy, CreateTime: timestamppb.New(f.CreatedAt), Updater: f.UpdatedBy, UpdateTime: timestamppb.New(f.UpdatedAt),
	}
}

// Hash is a digest as people read it.
func Hash(sum []byte) string { return hex.EncodeToString(sum) }
