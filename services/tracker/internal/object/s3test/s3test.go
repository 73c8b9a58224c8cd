// Package s3test runs a real S3-compatible server for tests: VersityGW, pinned in tools/s3, on a throw-away folder.
package s3test

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/services/tracker/internal/object"
)

const (
	accessKey = "test-access"
	secretKey = "test-secret-key"
	bucket    = "files"
	region    = "us-east-1"
)

// Start runs a server until the test ends and answers how to reach an empty bucket of it.
func Start(t testing.TB) object.S3Options {
	t.Helper()
	_, here, _, _ := runtime.Caller(0)
	install := exec.CommandContext(t.Context(), filepath.Join(filepath.Dir(here), "..", "..", "..", "..", "..", "tools", "install"), "s3")
	install.Stderr = t.Output()
	bin, err := install.Output()
	require.NoError(t, err)

	address := free(t)
	root, meta := t.TempDir(), t.TempDir()
	log := &bytes.Buffer{}
	server := exec.Command(filepath.Join(strings.TrimSpace(string(bin)), "versitygw"),
		"--port", address, "--region", region, "--quiet", "posix", "--sidecar", meta, root)
	server.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+accessKey, "ROOT_SECRET_KEY="+secretKey)
	server.Stdout, server.Stderr = log, log
	server.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		require.NoError(t, server.Process.Kill())
		_ = server.Wait()
	})

	options := object.S3Options{Endpoint: "http://" + address, Bucket: bucket, Prefix: "bullpen/", Region: region, AccessKey: accessKey, SecretKey: secretKey}
	client, err := minio.New(address, &minio.Options{Creds: credentials.NewStaticV4(accessKey, secretKey, ""), Region: region})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		err := client.MakeBucket(t.Context(), bucket, minio.MakeBucketOptions{Region: region})
		there, asked := client.BucketExists(t.Context(), bucket)
		return err == nil || asked == nil && there
	}, time.Minute, 20*time.Millisecond, "the S3 server did not come up")
	return options
}

func free(t testing.TB) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	return listener.Addr().String()
}
