package child

import "golang.org/x/sys/unix"

// unread answers how much of what was written to a pipe its reader has not taken.
func unread(fd uintptr) (int, bool) {
	n, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ)
	return n, err == nil
}
