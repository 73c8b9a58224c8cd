package suite

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/bullpenhq/bullpen/libs/config"
)

// keyBytes is the length of every key that is made here.
const keyBytes = 32

// key reads a key of the installation, making it first when there is none. The file is readable by its owner alone.
func key(dir, name string) (config.Secret, error) {
	path := filepath.Join(dir, name)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return makeKey(path)
	}
	if err != nil {
		return "", err
	}
	return config.Secret(strings.TrimSpace(string(text))), nil
}

// makeKey writes beside the final name and links, so that a crash leaves no half key and of two starts one wins.
func makeKey(path string) (config.Secret, error) {
	raw := make([]byte, keyBytes)
	if _, err := rand.Read(raw); err != nil {
		return "", fmt.Errorf("make key: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	draft, err := os.CreateTemp(filepath.Dir(path), ".key-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(draft.Name())
	text := base64.StdEncoding.EncodeToString(raw)
	if _, err := draft.WriteString(text + "\n"); err != nil {
		return "", errors.Join(err, draft.Close())
	}
	if err := errors.Join(draft.Sync(), draft.Close()); err != nil {
		return "", err
	}
	if err := os.Link(draft.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	kept, err := os.ReadFile(path)
	return config.Secret(strings.TrimSpace(string(kept))), err
}
