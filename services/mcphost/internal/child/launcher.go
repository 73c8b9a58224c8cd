package child

import (
	"os/exec"
	"runtime"
	"sync"
)

// Launcher starts processes from one thread. Linux sends the parent-death signal when the thread that started a child ends, not
// when the process does, and the Go runtime ends threads as it likes: so this one is kept for as long as the launcher is open.
type Launcher struct {
	requests chan launch
	closed   chan struct{}
	ended    chan struct{}
	once     sync.Once
}

type launch struct {
	cmd   *exec.Cmd
	reply chan error
}

// NewLauncher makes a launcher; Close it after the last of its children ended.
func NewLauncher() *Launcher {
	l := &Launcher{requests: make(chan launch), closed: make(chan struct{}), ended: make(chan struct{})}
	go l.run()
	return l
}

func (l *Launcher) run() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(l.ended)
	for {
		select {
		case r := <-l.requests:
			r.reply <- r.cmd.Start()
		case <-l.closed:
			return
		}
	}
}

func (l *Launcher) start(cmd *exec.Cmd) error {
	r := launch{cmd: cmd, reply: make(chan error, 1)}
	select {
	case l.requests <- r:
		return <-r.reply
	case <-l.closed:
		return ErrStopped
	}
}

// Close ends the launcher's thread.
func (l *Launcher) Close() {
	l.once.Do(func() { close(l.closed) })
	<-l.ended
}
