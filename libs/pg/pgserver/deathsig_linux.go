package pgserver

import "syscall"

// dieWithParent has the kernel stop the server cleanly when its supervisor is killed.
func dieWithParent(attr *syscall.SysProcAttr) {
	attr.Pdeathsig = syscall.SIGINT
}
