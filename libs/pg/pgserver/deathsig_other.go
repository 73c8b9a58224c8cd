//go:build unix && !linux

package pgserver

import "syscall"

// dieWithParent does nothing here: the next Start takes over a server that was left behind.
func dieWithParent(*syscall.SysProcAttr, syscall.Signal) {}
