//go:build !linux

package child

// unread is not known here.
func unread(uintptr) (int, bool) { return 0, false }
