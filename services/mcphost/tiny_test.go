package mcphost_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	companyv1 "github.com/bullpenhq/bullpen/gen/bullpen/company/v1"
)

// buildTiny builds the server that starts in a millisecond, once for all tests.
var buildTiny = sync.OnceValues(func() (string, error) {
	if err := os.MkdirAll(effectsFolder(), 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(effectsFolder(), "tinyserver")
	out, err := exec.Command("go", "build", "-o", path, "./internal/hostiletest/tinyserver").CombinedOutput()
	if err != nil {
		return "", errors.Join(err, errors.New(string(out)))
	}
	return path, nil
})

// tiny answers the path of a program of the test's own, so that its processes can be told from all others.
func tiny(t testing.TB) string {
	t.Helper()
	built, err := buildTiny()
	require.NoError(t, err)
	folder, err := os.MkdirTemp(effectsFolder(), "")
	require.NoError(t, err)
	path := filepath.Join(folder, "tinyserver")
	require.NoError(t, os.Link(built, path))
	return path
}

// templates are servers of which each seat has a child.
func templates(program string, n int) []*companyv1.McpServer {
	var all []*companyv1.McpServer
	for i := range n {
		all = append(all, &companyv1.McpServer{Name: fmt.Sprintf("s%d", i), Transport: "stdio", Command: program})
	}
	return all
}

// seated are seats with credentials for all servers.
func seated(n int, servers []*companyv1.McpServer) []*companyv1.Seat {
	var names []string
	for _, s := range servers {
		names = append(names, s.GetName())
	}
	var all []*companyv1.Seat
	for i := range n {
		all = append(all, seatWith(fmt.Sprintf("seat%d", i), names...))
	}
	return all
}

// processesOf answers the ids of all processes on the machine that run a program, whoever their parent is, the dead that nobody
// reaped included when they are children of this process.
func processesOf(t testing.TB, program string) []int {
	t.Helper()
	entries, err := os.ReadDir("/proc")
	require.NoError(t, err)
	var pids []int
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		exe, err := os.Readlink(filepath.Join("/proc", e.Name(), "exe"))
		if err == nil && exe == program || unreaped(pid, filepath.Base(program)) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// unreaped reports a dead child of this process of that name.
func unreaped(pid int, name string) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), "("+name+") ")
	var state string
	var parent int
	n, _ := fmt.Sscan(rest, &state, &parent)
	return n == 2 && state == "Z" && parent == os.Getpid()
}

// descriptors counts what this process has open, connections apart: those of pools and brokers come and go.
func descriptors(t testing.TB) map[string]int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	kinds := map[string]int{}
	for _, e := range entries {
		target, err := os.Readlink(filepath.Join("/proc/self/fd", e.Name()))
		if err != nil {
			continue // of this look itself
		}
		switch kind, _, _ := strings.Cut(target, ":"); kind {
		case "socket":
		case "pipe":
			kinds[kind]++
		default:
			kinds[target]++
		}
	}
	return kinds
}

// environmentOf answers the environment of a process; empty for one that is gone.
func environmentOf(pid int) string {
	data, _ := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return strings.ReplaceAll(string(data), "\x00", "\n")
}
