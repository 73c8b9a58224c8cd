// Package object keeps the bytes of files, apart from what is known about them.
//
// An object is written once, whole, under an id of its own, and never changed: a new content of a file is a new object. Whoever
// writes records the id beforehand and says afterwards that the object is in use, so that what a crash leaves behind can be found
// and swept. Two implementations keep the same promises: the chunks beside the tracker's own tables, in the package store, and [S3], any
// store that speaks that protocol.
package object

import (
	"context"
	"io"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/libs/fault"
)

// Store keeps objects. It is safe for concurrent use.
type Store interface {
	// Put stores all that content holds under an id that was never used: size bytes, or as many as come when size is -1. When it answers nil the object is durable;
	// otherwise some of it may be there, to be deleted.
	Put(ctx context.Context, id uuid.UUID, content io.Reader, size int64) error
	// Read answers up to limit bytes from offset on; fewer only at the object's end. An object that is not there is unavailable,
	// never empty.
	Read(ctx context.Context, id uuid.UUID, offset int64, limit int) ([]byte, error)
	// Delete makes the object be gone. One that is not there is gone already.
	Delete(ctx context.Context, id uuid.UUID) error
	// Ping tells whether the store can be reached.
	Ping(ctx context.Context) error
}

// Missing is what Read answers for an object that is not there.
func Missing(id uuid.UUID) error {
	return fault.New(fault.Unavailable,
		"the content store does not have the content of this file (object %s): the file is neither missing nor empty, its content cannot be read now", id)
}
