package apachekafka

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// properties make one node that is broker and controller. Internal topics
// have one partition and no replica, and a group's first member does not wait
// for others: all of it so that tests need not wait. The short session lets a
// killed node come back without first waiting for its former self to expire.
const properties = `process.roles=broker,controller
node.id=1
controller.quorum.voters=1@%[2]s
listeners=BROKER://%[1]s,CONTROLLER://%[2]s
advertised.listeners=BROKER://%[1]s
listener.security.protocol.map=BROKER:PLAINTEXT,CONTROLLER:PLAINTEXT
inter.broker.listener.name=BROKER
controller.listener.names=CONTROLLER
log.dirs=%[3]s
auto.create.topics.enable=false
group.initial.rebalance.delay.ms=0
broker.session.timeout.ms=2000
broker.heartbeat.interval.ms=500
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
transaction.state.log.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.num.partitions=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
`

// logging keeps warnings, which is what a failed test wants to see.
const logging = `<?xml version="1.0" encoding="UTF-8"?>
<Configuration status="error">
  <Appenders>
    <Console name="out"><PatternLayout pattern="%d{HH:mm:ss.SSS} %p %m (%c)%n"/></Console>
  </Appenders>
  <Loggers>
    <Root level="warn"><AppenderRef ref="out"/></Root>
  </Loggers>
</Configuration>
`

func (s *Server) propertiesFile() string { return filepath.Join(s.dir, "server.properties") }
func (s *Server) loggingFile() string    { return filepath.Join(s.dir, "log4j2.xml") }
func (s *Server) logFile() string        { return filepath.Join(s.dir, "server.log") }
func (s *Server) dataDir() string        { return filepath.Join(s.dir, "data") }

// configure chooses two free ports and writes the configuration. It answers
// the broker's address.
func (s *Server) configure() (string, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return "", fmt.Errorf("apache kafka: %w", err)
	}
	addrs, err := freeAddrs(2)
	if err != nil {
		return "", fmt.Errorf("apache kafka: no free port: %w", err)
	}
	text := fmt.Sprintf(properties, addrs[0], addrs[1], s.dataDir())
	err = errors.Join(
		os.WriteFile(s.propertiesFile(), []byte(text), 0o600),
		os.WriteFile(s.loggingFile(), []byte(logging), 0o600),
	)
	if err != nil {
		return "", fmt.Errorf("apache kafka: %w", err)
	}
	return addrs[0], nil
}

// freeAddrs holds all ports before it lets go of any, so that they differ.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}

// format writes the cluster's identity into an empty data folder, without
// which a node does not start.
func (s *Server) format() error {
	if _, err := os.Stat(filepath.Join(s.dataDir(), "meta.properties")); err == nil {
		return nil
	}
	id := make([]byte, 16)
	_, _ = rand.Read(id) // never fails
	id[0] &= 0x7f        // an id must not begin with a dash
	cmd := s.java("kafka.tools.StorageTool", "format",
		"--cluster-id", base64.RawURLEncoding.EncodeToString(id), "--config", s.propertiesFile())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("apache kafka: format %s: %w: %s", s.dataDir(), err, out)
	}
	return nil
}

// lastWords is the end of the node's log.
func (s *Server) lastWords() string {
	log, err := os.ReadFile(s.logFile())
	if err != nil {
		return err.Error()
	}
	const enough = 4 << 10
	return strings.TrimSpace(string(log[max(0, len(log)-enough):]))
}
