package clitest

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/demo"
	"github.com/bullpenhq/bullpen/cmd/bullpen/internal/story"
	"github.com/bullpenhq/bullpen/libs/pg/pgserver"
)

// Installation is `bullpen up` with the story's company, whose model is scripted, and doubles of the vendors.
type Installation struct {
	// URL is where every service listens, and Data the data directory.
	URL, Data string
	Vendors   *story.Vendors

	folder  string
	process *Process
}

// running is the installation that the tests of this process share. It is started by the first that asks, and stopped by [Main].
var running struct {
	once sync.Once
	*Installation
	err error
}

// Shared answers it. Tests run beside each other on it: each must be content with what others left there.
func Shared(t testing.TB) *Installation {
	t.Helper()
	running.once.Do(func() { running.Installation, running.err = start(context.Background()) })
	if running.err != nil {
		t.Fatalf("start an installation: %v", running.err)
	}
	return running.Installation
}

func start(ctx context.Context) (i *Installation, err error) {
	i = &Installation{}
	defer func() {
		if err != nil {
			_ = i.stop(ctx)
		}
	}()
	if i.folder, err = pgserver.TempDir("bullpen-clitest-"); err != nil {
		return i, err
	}
	i.Data = filepath.Join(i.folder, "data")
	if i.Vendors, err = story.StartVendors(ctx); err != nil {
		return i, err
	}
	executable, err := os.Executable()
	if err != nil {
		return i, err
	}
	document, err := story.Document(executable, demo.ServerCommand)
	if err != nil {
		return i, err
	}
	file := filepath.Join(i.folder, "company.yaml")
	if err = os.WriteFile(file, []byte(document), 0o600); err != nil {
		return i, err
	}
	if i.process, err = Up(i.Data, i.Vendors.Environment(), "--company", file); err != nil {
		return i, err
	}
	if err = i.process.Await(ctx); err != nil {
		return i, err
	}
	i.URL, err = Address(i.Data)
	return i, err
}

// Address answers where the installation on a data directory listens, as it says there.
func Address(data string) (string, error) {
	text, err := os.ReadFile(filepath.Join(data, "endpoint.json"))
	if err != nil {
		return "", err
	}
	var endpoint struct {
		URL string `json:"url"`
	}
	err = json.Unmarshal(text, &endpoint)
	return endpoint.URL, err
}

// Getenv is the environment of somebody on the installation's machine: its data directory and the vendors' secrets.
func (i *Installation) Getenv(name string) string {
	if name == "BULLPEN_DATA" {
		return i.Data
	}
	return i.Vendors.Getenv(name)
}

// Run runs a command there.
func (i *Installation) Run(args ...string) Result { return Run(i.Getenv, args...) }

func stopShared() error {
	if running.Installation == nil {
		return nil
	}
	return running.stop(context.Background())
}

func (i *Installation) stop(ctx context.Context) error {
	return finish(ctx,
		func(ctx context.Context) error {
			if i.process == nil {
				return nil
			}
			code, err := i.process.Stop(ctx)
			if err == nil && code != 0 {
				err = fmt.Errorf("the installation ended with exit code %d:\n%s", code, i.process.Said())
			}
			return err
		},
		func(context.Context) error {
			if i.Vendors == nil {
				return nil
			}
			return i.Vendors.Close()
		},
		func(context.Context) error { return os.RemoveAll(i.folder) },
	)
}
