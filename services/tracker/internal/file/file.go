// Package file is a file that a project keeps, without its bytes: where it is, how a part of it is shown, and what its names
// may be.
//
// It is pure. The idea to hold: a text is shown in whole characters or not as text at all, so what is shown is never broken and
// what was left out is always counted.
package file

import (
	"mime"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Limits, in bytes.
const (
	MaxPath        = 1024
	MaxContentType = 255
	MaxSize        = 1 << 30
	// PageBytes is how much of a file one read shows unless it asks for less or more.
	PageBytes = 32 << 10
)

// ReasonVersion: the file is at another version than the caller read, or is not there.
const ReasonVersion = "FILE_VERSION"

// File is a file without its content.
type File struct {
	Project     string
	Path        string
	ContentType string
	Hash        []byte // SHA-256 of the content
	Size        int64
	Version     int32
	// Object is where the content is stored; nil for a removed file.
	Object    *uuid.UUID
	CreatedBy string
	CreatedAt time.Time
	UpdatedBy string
	UpdatedAt time.Time
	RemovedAt *time.Time
}

// There reports whether the file exists and was not removed.
func (f *File) There() bool { return f != nil && f.RemovedAt == nil }

// CleanPath answers a path in its stored form: segments parted by single slashes, none before or after. argument is the one it
// came in.
func CleanPath(argument, text string) (string, error) {
	refuse := func(format string, args ...any) (string, error) {
		return "", fault.New(fault.Invalid, argument+" "+format, args...).WithField(argument)
	}
	clean := strings.TrimPrefix(text, "/")
	switch {
	case clean == "":
		return refuse("must name a file, such as notes/plan.md")
	case len(clean) > MaxPath:
		return refuse("is %d bytes long; a path is at most %d", len(clean), MaxPath)
	case !utf8.ValidString(clean):
		return refuse("must be valid UTF-8")
	case strings.Contains(clean, `\`):
		return refuse("parts its segments with /, not with \\")
	case strings.ContainsFunc(clean, unicode.IsControl):
		return refuse("must not contain control characters")
	case strings.HasSuffix(clean, "/"):
		return refuse("must not end in /")
	}
	for segment := range strings.SplitSeq(clean, "/") {
		switch segment {
		case "":
			return refuse("must not contain //")
		case ".", "..":
			return refuse("must not contain %q as a segment", segment)
		}
	}
	return clean, nil
}

// CleanFolder answers a folder in the form that its files' paths begin with, which ends in a slash; empty for the top.
func CleanFolder(argument, text string) (string, error) {
	text = strings.TrimSuffix(text, "/")
	if text == "" {
		return "", nil
	}
	clean, err := CleanPath(argument, text)
	return clean + "/", err
}

// TypeOf answers the media type of a path's extension, for a file whose writer did not say.
func TypeOf(name string) string {
	switch strings.ToLower(path.Ext(name)) {
	case ".md", ".markdown":
		return "text/markdown; charset=utf-8"
	case ".yaml", ".yml":
		return "application/yaml"
	case ".txt", ".log":
		return "text/plain; charset=utf-8"
	case ".csv":
		return "text/csv; charset=utf-8"
	case ".json":
		return "application/json"
	}
	if known := mime.TypeByExtension(path.Ext(name)); known != "" {
		return known
	}
	return "application/octet-stream"
}

// CheckType refuses what is no media type.
func CheckType(argument, text string) error {
	if len(text) > MaxContentType {
		return fault.New(fault.Invalid, "%s is %d bytes long; a media type is at most %d", argument, len(text), MaxContentType).WithField(argument)
	}
	if _, _, err := mime.ParseMediaType(text); err != nil || !strings.Contains(text, "/") {
		return fault.New(fault.Invalid, "%s must be a media type such as text/markdown, not %q", argument, text).WithField(argument)
	}
	return nil
}

// Precondition refuses a write whose caller read another version than the one that stands. f is nil for a file that never was.
func Precondition(f *File, name string, ifVersion *int32) error {
	switch {
	case ifVersion == nil:
		return nil
	case !f.There():
		return fault.New(fault.StaleVersion, "%s is not there any more, so it is not at version %d; list_project_files shows what is there", name, *ifVersion).
			WithField("if_version").WithReason(ReasonVersion)
	case f.Version != *ifVersion:
		return fault.New(fault.StaleVersion, "%s has changed since you read it: it is at version %d, not %d; read it again and decide from what it says now",
			name, f.Version, *ifVersion).WithField("if_version").WithReason(ReasonVersion).WithFact("current_version", itoa(f.Version))
	}
	return nil
}
