package bustest

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/bullpenhq/bullpen/libs/bus"
)

// memberEnv makes the test binary a group member: brokers, topic, group and
// the number of messages to take, separated by spaces.
const memberEnv = "BULLPEN_BUSTEST_MEMBER"

// Main runs a package's tests, and fails them if goroutines stay behind.
func Main(m *testing.M) {
	if order := os.Getenv(memberEnv); order != "" {
		if err := member(order); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// member takes messages, tells their values, commits none and waits to be
// killed.
func member(order string) error {
	var brokers, topic, group string
	var count int
	if _, err := fmt.Sscan(order, &brokers, &topic, &group, &count); err != nil {
		return err
	}
	c, err := bus.Open(bus.Config{Brokers: strings.Split(brokers, ","), ClientID: "bustest-member"})
	if err != nil {
		return err
	}
	s, err := c.Subscribe(topic, group)
	if err != nil {
		return err
	}
	for taken := 0; taken < count; {
		msgs, err := s.Fetch(context.Background(), count-taken)
		if err != nil {
			return err
		}
		for _, m := range msgs {
			fmt.Printf("took %s\n", m.Value)
		}
		taken += len(msgs)
	}
	select {}
}

// runMemberAndKill starts a member in a process of its own, waits until it
// holds count messages and kills it.
func runMemberAndKill(t *testing.T, b Broker, topic, group string, count int) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(testContext(t), exe)
	cmd.Env = append(os.Environ(), memberEnv+"="+strings.Join(
		[]string{strings.Join(b.Addrs, ","), topic, group, strconv.Itoa(count)}, " "))
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	lines := bufio.NewScanner(out)
	taken := 0
	for taken < count && lines.Scan() {
		if strings.HasPrefix(lines.Text(), "took ") {
			taken++
		}
	}
	require.NoError(t, cmd.Process.Kill())
	require.Error(t, cmd.Wait(), "the member was killed")
	require.Equal(t, count, taken, complaints.String())
}
