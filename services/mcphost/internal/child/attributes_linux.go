package child

import "syscall"

// attributes put the child into a group of its own and let it die with its launcher's thread.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
