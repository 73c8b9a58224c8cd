//go:build unix && !linux

package child

import "syscall"

// attributes put the child into a group of its own. Outside Linux a child that ignores the end of its input outlives a killed host.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true}
}
