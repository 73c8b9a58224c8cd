package topology

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"
)

const modulePath = "github.com/bullpenhq/bullpen/"

// Build builds every service's binary, and the program's, named as the services are and `bullpen`, and answers the folder
// that they are in. It is a folder of the user's cache, so that what has not changed is not linked again. With the race
// detector in this process it is in the binaries, too.
func Build(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	// Without debugger's tables: they are a fifth of the linking, and stack traces do not need them.
	arguments := []string{"build", "-ldflags=-w"}
	variant := "plain"
	if raceDetector() {
		arguments, variant = append(arguments, "-race"), "race"
	}
	dir := filepath.Join(cache, "bullpen", "topology", variant)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return "", err
	}
	defer unlock()
	arguments = append(arguments, "-o", dir+string(filepath.Separator), modulePath+"cmd/bullpen")
	for _, service := range Services() {
		arguments = append(arguments, modulePath+"services/"+service+"/cmd/"+service)
	}
	output, err := exec.CommandContext(ctx, "go", arguments...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the services: %w\n%s", err, output)
	}
	return dir, nil
}

// lock keeps two test processes from building into one folder at once. A build replaces files and does not write into them,
// so a running binary stays what it is.
func lock(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// raceDetector reports whether this process has it.
func raceDetector() bool {
	info, known := debug.ReadBuildInfo()
	return known && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}
