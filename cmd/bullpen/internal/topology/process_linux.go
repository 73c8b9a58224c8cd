package topology

import "syscall"

// dieWithParent has the kernel end the process when whoever started it is gone, however that ended.
func dieWithParent(attributes *syscall.SysProcAttr) { attributes.Pdeathsig = syscall.SIGKILL }
