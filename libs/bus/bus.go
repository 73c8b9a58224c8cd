// Package bus carries messages between services over the Kafka protocol.
//
// It is a thin seam over kafka-go with the settings that neither lose data nor
// time, and it knows nothing of what the messages mean. The same code speaks
// to Apache Kafka and to the broker of package embedded; package bustest is
// the suite that both must pass.
//
// The one idea to hold: at least once, in order per key. Publish answers nil
// only when every message is durable, and repeating it is always safe;
// a consumer may see a message again after a crash or a rebalance and must
// make its effect idempotent. Within one partition messages are handed out in
// offset order, and a key always lives in one partition.
//
//	Publish ── Hash(key) ──► partition ──► Fetch ──► effect ──► Commit
//	   ▲                                     │
//	   └── repeat until nil                  └── again, if never committed
//
// It is not for request and reply, and not a store: Postgres remembers, the
// bus carries.
package bus

import (
	"context"
	"log/slog"
	"time"
)

// Message is one record of a topic. Publish reads Topic, Key, Value, Headers
// and Time; Fetch and ReadAll fill every field.
type Message struct {
	Topic string
	// Key decides the partition: messages of one key keep their order. An
	// empty key spreads messages over the partitions and gives up order.
	Key string
	// Value is at most MaxValueBytes long. An empty value is kept as empty; on
	// a compacted topic nil is the tombstone that deletes its key.
	Value []byte
	// Headers together with Key take at most MaxHeadBytes.
	Headers   map[string]string
	Partition int
	Offset    int64
	// Time is when the message was published; zero means now.
	Time time.Time
}

// Topic describes a topic that a service publishes or reads.
type Topic struct {
	Name string
	// Partitions bounds how many members of a group share the work; 0 means 1.
	Partitions int
	// Compacted keeps the last value of every key for ever instead of
	// everything for a while.
	Compacted bool
	// Retention is how long messages are kept; 0 leaves it to the broker.
	// It has no meaning for a compacted topic.
	Retention time.Duration
}

// Publisher sends messages. It is safe for concurrent use.
type Publisher interface {
	// Publish returns nil only when every message is acknowledged by all
	// in-sync replicas. Messages of one key keep the order of the arguments,
	// and of successive calls. A failure is a *PublishError that names the
	// messages that may be missing; all others are durable. Repeating the
	// whole call, or only what failed, is safe: at worst a message is there
	// twice.
	Publish(ctx context.Context, msgs ...Message) error
}

// Subscription is one member of a consumer group on one topic. Fetch and
// Commit may be called from different goroutines, Close from any.
type Subscription interface {
	// Fetch waits until at least one message is there and returns all that
	// wait, at most limit, without waiting for more. Broker restarts and
	// rebalances are waited out, not reported: an error is ctx's or ErrClosed.
	Fetch(ctx context.Context, limit int) ([]Message, error)
	// Commit marks the messages, and all before them in their partitions, as
	// done. It is written to the broker within 100 ms and at Close. Messages
	// of a partition that has meanwhile moved to another member are passed
	// over: that member sees them again.
	Commit(ctx context.Context, msgs ...Message) error
	// Close writes outstanding commits and leaves the group, so that others
	// take over at once. It is idempotent.
	Close() error
}

// Bus is a connection to a Kafka cluster. It is safe for concurrent use.
type Bus interface {
	Publisher
	// EnsureTopics creates the topics that are missing and returns when the
	// leader of every partition is known. It is idempotent. A topic that
	// exists with fewer partitions than asked for is refused (class
	// conflict): adding partitions moves keys and so breaks their order,
	// which is an operator's decision.
	EnsureTopics(ctx context.Context, topics ...Topic) error
	// Subscribe joins a consumer group. A group without committed offsets
	// starts at the beginning of the topic. It does not wait for the broker.
	Subscribe(topic, group string) (Subscription, error)
	// ReadAll reads a topic from its start to the end it had when called,
	// partition by partition and in offset order. It needs no group and
	// commits nothing. Of a compacted topic the caller keeps the last message
	// of each key, as compaction runs late.
	ReadAll(ctx context.Context, topic string) ([]Message, error)
	// Empty reports whether a topic was never published to. A topic that was
	// is not empty, even when retention has taken all its messages; so one
	// that is empty although somebody published to it has been lost.
	Empty(ctx context.Context, topic string) (bool, error)
	// Ping answers whether a broker can be reached and knows its cluster.
	Ping(ctx context.Context) error
	// Close closes every subscription, then the connections.
	Close() error
}

// Limits of one message. They are checked before anything is sent. Topics
// made by EnsureTopics accept such a message whole.
const (
	// MaxValueBytes is the longest value.
	MaxValueBytes = 1 << 20
	// MaxHeadBytes is the most that key, header names and header values take
	// together.
	MaxHeadBytes = 64 << 10
)

// Config says how to reach the cluster.
type Config struct {
	// Brokers are host:port addresses to start from; one that answers is enough.
	Brokers []string
	// ClientID names this process in the broker's logs and quotas.
	ClientID string
	// Log is told when the connection to the broker is lost and found again,
	// once each. Nil discards.
	Log *slog.Logger
}
