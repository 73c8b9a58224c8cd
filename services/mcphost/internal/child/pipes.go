package child

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// pipes are both ends of the child's three streams.
type pipes struct {
	in, out, err *os.File
	theirs       []*os.File
}

func openPipes(cmd *exec.Cmd) (*pipes, error) {
	p := &pipes{}
	var all []*os.File
	for range 3 {
		r, w, err := os.Pipe()
		if err != nil {
			for _, f := range all {
				_ = f.Close()
			}
			return nil, fmt.Errorf("no pipes for it: %w", errnoOf(err))
		}
		all = append(all, r, w)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = all[0], all[3], all[5]
	p.theirs = []*os.File{all[0], all[3], all[5]}
	p.in, p.out, p.err = all[1], all[2], all[4]
	return p, nil
}

func (p *pipes) closeChildEnds() {
	for _, f := range p.theirs {
		_ = f.Close()
	}
}

func (p *pipes) closeOurs() {
	_ = p.in.Close()
	_ = p.out.Close()
	_ = p.err.Close()
}

// lookPath finds the program in the child's own PATH, which is not this process's.
func lookPath(name string, env []string) (string, error) {
	if strings.ContainsRune(name, '/') {
		return name, nil
	}
	var dirs string
	for _, variable := range env {
		if value, ok := strings.CutPrefix(variable, "PATH="); ok {
			dirs = value
		}
	}
	for _, dir := range filepath.SplitList(dirs) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", fmt.Errorf("the program %q is not in PATH", name)
}

// errnoOf drops the path and the operation of a file error: what is left is the system's own sentence.
func errnoOf(err error) error {
	var path *os.PathError
	if errors.As(err, &path) {
		return path.Err
	}
	return err
}

// exitOf says how a child ended.
func exitOf(state *os.ProcessState, err error) error {
	switch {
	case state == nil:
		return fmt.Errorf("it could not be waited for: %w", err)
	case state.Exited():
		return fmt.Errorf("it exited with status %d", state.ExitCode())
	default:
		return fmt.Errorf("it was ended by a signal (%s)", state)
	}
}
