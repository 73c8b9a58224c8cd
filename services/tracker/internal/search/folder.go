package search

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/google/uuid"

	"github.com/bullpenhq/bullpen/services/tracker/internal/search/segment"
)

// format is the folder's; one of another format is built anew.
const format = 1

const (
	manifestName = "manifest"
	lockName     = "lock"
	segmentEnd   = ".segment"
)

// errTaken is answered for a folder that another process has.
var errTaken = errors.New("another process keeps its index there")

// errUnusable is answered for a folder whose index cannot be gone on with.
var errUnusable = errors.New("the index in the folder cannot be used")

// manifest says what the folder holds. What it does not name is no part of the index, so that a write counts once the manifest is
// there, whole, and never before.
type manifest struct {
	Format int `json:"format"`
	// Source is the database, and the life of it, that the index was made from.
	Source string `json:"source"`
	// Cursor is up to where the history has been followed.
	Cursor Cursor `json:"cursor"`
	// Built says that every item has been read; until then After is the last that was.
	Built    bool          `json:"built"`
	After    uuid.UUID     `json:"after"`
	Segments []segmentFile `json:"segments"`
}

type segmentFile struct {
	File string `json:"file"`
	// Removed has the bits of the documents that no longer count.
	Removed []byte `json:"removed,omitempty"`
}

// folder keeps an index on disk, for one process at a time.
type folder struct {
	dir       string
	lock      *os.File
	temporary bool
	next      atomic.Int64
	// named are the files of the last manifest.
	named map[string]bool
}

// openFolder takes a folder, which is made when it is not there. An empty name is a new one that goes with the process.
func openFolder(dir string) (*folder, error) {
	f := &folder{dir: dir}
	var err error
	if dir == "" {
		f.temporary = true
		if f.dir, err = os.MkdirTemp("", "bullpen-tracker-search-*"); err != nil {
			return nil, err
		}
		return f, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if f.lock, err = os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(errTaken, f.lock.Close())
	}
	return f, nil
}

// close gives the folder up, and removes it when it goes with the process.
func (f *folder) close() error {
	if f.temporary {
		return os.RemoveAll(f.dir)
	}
	return f.lock.Close()
}

// clear removes the index.
func (f *folder) clear() error {
	if err := os.Remove(filepath.Join(f.dir, manifestName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return f.sweep(nil)
}

// sweep removes the segments that keep does not name: those of writes that were not finished.
func (f *folder) sweep(keep map[string]bool) error {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), segmentEnd) && !keep[e.Name()] {
			errs = append(errs, os.Remove(filepath.Join(f.dir, e.Name())))
		}
		if number := int64(0); strings.HasSuffix(e.Name(), segmentEnd) {
			if _, err := fmt.Sscanf(e.Name(), "%d", &number); err == nil {
				f.next.Store(max(f.next.Load(), number))
			}
		}
	}
	f.named = keep
	return errors.Join(errs...)
}

// load answers the index that was kept last, of source. errUnusable when there is none that can be gone on with.
func (f *folder) load(source string) (manifest, []*part, error) {
	m, err := f.manifest()
	if err != nil {
		return m, nil, err
	}
	if m.Format != format || m.Source != source {
		return m, nil, fmt.Errorf("%w: it is of another version or another database", errUnusable)
	}
	var parts []*part
	keep := map[string]bool{}
	for _, s := range m.Segments {
		p, err := f.open(s.File)
		if err != nil {
			return m, nil, fmt.Errorf("%w: %w", errUnusable, err)
		}
		if len(s.Removed) > 0 {
			if len(s.Removed) != (p.segment.Docs()+63)/64*8 {
				return m, nil, fmt.Errorf("%w: %s and its marks do not fit", errUnusable, s.File)
			}
			for at := 0; at < len(s.Removed); at += 8 {
				p.removed = append(p.removed, binary.LittleEndian.Uint64(s.Removed[at:]))
			}
			for doc := range p.segment.Docs() {
				if !p.alive(doc) {
					p.dead++
				}
			}
		}
		parts, keep[s.File] = append(parts, p), true
	}
	return m, parts, f.sweep(keep)
}

// manifest reads the manifest: its checksum in a line, and what it says.
func (f *folder) manifest() (manifest, error) {
	var m manifest
	raw, err := os.ReadFile(filepath.Join(f.dir, manifestName))
	if errors.Is(err, fs.ErrNotExist) {
		return m, fmt.Errorf("%w: there is none", errUnusable)
	}
	if err != nil {
		return m, err
	}
	sum, said, _ := strings.Cut(string(raw), "\n")
	if sum != checksum([]byte(said)) {
		return m, fmt.Errorf("%w: its manifest is damaged", errUnusable)
	}
	if err := json.Unmarshal([]byte(said), &m); err != nil {
		return m, fmt.Errorf("%w: %w", errUnusable, err)
	}
	return m, nil
}

func checksum(data []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(data, crc32.MakeTable(crc32.Castagnoli)))
}

// commit makes the manifest the folder's, and removes the segments that only the one before named.
func (f *folder) commit(m manifest) error {
	said, err := json.Marshal(m)
	if err != nil {
		return err
	}
	draft := filepath.Join(f.dir, manifestName+".new")
	if err := f.create(draft, func(out writer) error {
		_, err := fmt.Fprintf(out, "%s\n%s", checksum(said), said)
		return err
	}); err != nil {
		return err
	}
	if err := os.Rename(draft, filepath.Join(f.dir, manifestName)); err != nil {
		return err
	}
	if err := f.settle(f.dir); err != nil {
		return err
	}
	keep := map[string]bool{}
	for _, s := range m.Segments {
		keep[s.File] = true
	}
	for name := range f.named {
		if !keep[name] {
			err = errors.Join(err, os.Remove(filepath.Join(f.dir, name)))
		}
	}
	f.named = keep
	return err
}

type writer = io.Writer

// write keeps a new segment, which counts once a manifest names it.
func (f *folder) write(write func(writer) error) (*part, error) {
	name := fmt.Sprintf("%08d%s", f.next.Add(1), segmentEnd)
	if err := f.create(filepath.Join(f.dir, name), write); err != nil {
		return nil, errors.Join(err, os.Remove(filepath.Join(f.dir, name)))
	}
	return f.open(name)
}

func (f *folder) create(path string, write func(writer) error) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err := write(file); err != nil {
		return errors.Join(err, file.Close())
	}
	if f.temporary {
		return file.Close()
	}
	return errors.Join(file.Sync(), file.Close())
}

// settle makes names durable.
func (f *folder) settle(path string) error {
	if f.temporary {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}

// open maps a segment into memory until nobody uses it any more.
func (f *folder) open(name string) (*part, error) {
	file, err := os.Open(filepath.Join(f.dir, name))
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if info.Size() == 0 {
		return nil, segment.ErrDamaged
	}
	data, err := syscall.Mmap(int(file.Fd()), 0, int(info.Size()), syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map %s: %w", name, err)
	}
	s, err := segment.Parse(data)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", name, err), syscall.Munmap(data))
	}
	runtime.AddCleanup(s, func(data []byte) { _ = syscall.Munmap(data) }, data)
	return newPart(s, name), nil
}
