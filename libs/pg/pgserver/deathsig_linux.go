package pgserver

import "syscall"

// dieWithParent has the kernel send the server a signal when its supervisor is killed.
func dieWithParent(attr *syscall.SysProcAttr, signal syscall.Signal) {
	attr.Pdeathsig = signal
}
