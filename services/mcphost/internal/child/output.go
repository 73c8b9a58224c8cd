package child

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
)

// errEnd is the end of the output.
var errEnd = errors.New("end of output")

// output reads lines of standard output on behalf of one caller.
type output struct {
	reader *bufio.Reader
	end    chan struct{} // closed when nothing more can be read
	once   sync.Once

	mu           sync.Mutex
	lines, bytes int // of noise
}

func newOutput(f *os.File) *output {
	return &output{reader: bufio.NewReaderSize(f, 64<<10), end: make(chan struct{})}
}

// next answers the next line that looks like a message; others are noise.
func (o *output) next() ([]byte, error) {
	for {
		line, err := o.line()
		if err != nil {
			o.close()
			return nil, err
		}
		line = bytes.TrimSpace(line)
		switch {
		case len(line) == 0:
		case line[0] == '{' || line[0] == '[':
			return line, nil
		default:
			if err := o.noise(len(line)); err != nil {
				return nil, err
			}
		}
	}
}

// line reads up to the next newline, into memory of its own.
func (o *output) line() ([]byte, error) {
	var line []byte
	for {
		part, err := o.reader.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(bytes.TrimSuffix(line, []byte("\n"))) > maxLine:
			return nil, fmt.Errorf("it wrote a line of more than %d MiB to its output", maxLine>>20)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, errEnd // what is left without a newline is half a message
		}
	}
}

// noise counts a line that is no message, and refuses one too many.
func (o *output) noise(size int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.lines++
	o.bytes += size
	if o.lines > maxNoiseLines || o.bytes > maxNoiseBytes {
		return fmt.Errorf("it wrote %d lines to its standard output that are no protocol messages", o.lines)
	}
	return nil
}

func (o *output) noiseLines() int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.lines
}

func (o *output) close() { o.once.Do(func() { close(o.end) }) }

func (o *output) waitEnd() { <-o.end }
