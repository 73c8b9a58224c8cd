package mcphost_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// childrenOf answers the children of this process that have the fixture's file in their environment.
func childrenOf(t testing.TB, effects string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil || parentOf(pid) != os.Getpid() {
			continue
		}
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		if err == nil && strings.Contains(string(environment), effects) {
			pids = append(pids, pid)
		}
	}
	return pids
}

func parentOf(pid int) int {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(after)
	if len(fields) < 2 {
		return 0
	}
	parent, _ := strconv.Atoi(fields[1])
	return parent
}

func grandchildOf(t testing.TB, effects string) int {
	t.Helper()
	data, err := os.ReadFile(effects)
	require.NoError(t, err)
	for line := range strings.Lines(string(data)) {
		if after, ok := strings.CutPrefix(line, "grandchild "); ok {
			pid, err := strconv.Atoi(strings.TrimSpace(after))
			require.NoError(t, err)
			return pid
		}
	}
	t.Fatal("no grandchild")
	return 0
}

// alive reports whether a process is there and is no zombie.
func alive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(stat), ") ")
	return !strings.HasPrefix(after, "Z") || parentOf(pid) == os.Getpid()
}
