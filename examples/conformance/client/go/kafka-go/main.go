// kafka-go under `kwire conformance client --stdin`: go build -o client ./kafka-go && kwire conformance client --stdin -- ./client
package main

import (
	"context"
	"crypto/tls"
	"errors"
	"sync"
	"time"

	"kwire.example/client/task"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
)

type place struct {
	number    int
	partition int32
}

func mechanism(t task.Task) (sasl.Mechanism, error) {
	user, password := t.Settings["sasl.username"], t.Settings["sasl.password"]
	switch t.Settings["sasl.mechanism"] {
	case "PLAIN":
		return plain.Mechanism{Username: user, Password: password}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, user, password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, user, password)
	}
	return nil, nil
}

func produce(t task.Task) error {
	credentials, err := mechanism(t)
	if err != nil {
		return err
	}
	s := t.Settings
	transport := &kafka.Transport{SASL: credentials, DialTimeout: t.Ms("request.timeout.ms"), TLS: (*tls.Config)(nil)}
	defer transport.CloseIdleConnections()
	acks := map[string]kafka.RequiredAcks{"0": kafka.RequireNone, "1": kafka.RequireOne}
	codecs := map[string]kafka.Compression{"gzip": kafka.Gzip, "snappy": kafka.Snappy, "lz4": kafka.Lz4, "zstd": kafka.Zstd}
	required, ok := acks[s["acks"]]
	if !ok {
		required = kafka.RequireAll
	}
	w := &kafka.Writer{
		Addr: kafka.TCP(t.Bootstrap), Topic: t.Topic, RequiredAcks: required, Compression: codecs[s["compression.type"]],
		Balancer:  kafka.BalancerFunc(func(m kafka.Message, partitions ...int) int { return int(m.WriterData.(place).partition) }),
		Transport: transport, Async: true, MaxAttempts: 10, BatchTimeout: t.Ms("linger.ms") + time.Millisecond, BatchBytes: 4 << 20,
		WriteBackoffMin: t.Ms("retry.backoff.ms"), WriteBackoffMax: t.Ms("retry.backoff.max.ms"),
		ReadTimeout: t.Ms("request.timeout.ms"), WriteTimeout: t.Ms("request.timeout.ms"),
		Completion: func(messages []kafka.Message, err error) {
			for _, m := range messages {
				if err != nil {
					task.Say(task.Line{"failed": m.WriterData.(place).number, "error": err.Error()})
				} else {
					task.Say(task.Line{"acked": m.WriterData.(place).number, "offset": m.Offset})
				}
			}
		},
	}
	for i, each := range t.Records {
		m := kafka.Message{Value: each.Content(), Key: task.Bytes(each.Key), WriterData: place{i, each.Partition}}
		for _, h := range each.Headers {
			m.Headers = append(m.Headers, kafka.Header{Key: *h[0], Value: task.Bytes(h[1])})
		}
		if err := w.WriteMessages(context.Background(), m); err != nil {
			task.Say(task.Line{"failed": i, "error": err.Error()})
		}
	}
	return w.Close()
}

func consume(t task.Task) error {
	credentials, err := mechanism(t)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancel()
	c := kafka.ReaderConfig{
		Brokers: []string{t.Bootstrap}, Topic: t.Topic, MinBytes: 1, MaxBytes: 4 << 20, MaxWait: t.Ms("fetch.max.wait.ms"),
		ReadBackoffMin: t.Ms("retry.backoff.ms"), ReadBackoffMax: t.Ms("retry.backoff.max.ms"), StartOffset: kafka.FirstOffset,
		SessionTimeout: t.Ms("session.timeout.ms"), HeartbeatInterval: t.Ms("heartbeat.interval.ms"), RebalanceTimeout: t.Ms("rebalance.timeout.ms"),
		OffsetOutOfRangeError: t.Settings["auto.offset.reset"] == "none", MaxAttempts: 10, JoinGroupBackoff: t.Ms("retry.backoff.ms"),
		Dialer: &kafka.Dialer{Timeout: t.Ms("request.timeout.ms"), SASLMechanism: credentials},
	}
	if t.Settings["isolation.level"] == "read_committed" {
		c.IsolationLevel = kafka.ReadCommitted
	}
	readers := []*kafka.Reader{}
	if t.Group != nil {
		c.GroupID = *t.Group
		readers = append(readers, kafka.NewReader(c))
	} else {
		for _, each := range t.Partitions {
			c.Partition = int(each)
			r := kafka.NewReader(c)
			if t.Offset != nil {
				r.SetOffset(*t.Offset)
			}
			readers = append(readers, r)
		}
	}
	messages, failures := make(chan kafka.Message), make(chan error, 100)
	var running sync.WaitGroup
	for _, r := range readers {
		running.Add(1)
		go func() {
			defer running.Done()
			for ctx.Err() == nil {
				m, err := r.FetchMessage(ctx)
				if err != nil {
					failures <- err
					return
				}
				messages <- m
			}
		}()
	}
	defer func() {
		cancel()
		go func() {
			for range messages {
			}
		}()
		running.Wait()
		close(messages)
		for _, r := range readers {
			r.Close()
		}
	}()
	read := []kafka.Message{}
	for {
		var quiet <-chan time.Time
		if len(read) >= t.Count {
			quiet = time.After(300 * time.Millisecond)
		}
		select {
		case m := <-messages:
			headers := [][]any{}
			for _, h := range m.Headers {
				headers = append(headers, []any{h.Key, task.Text(h.Value)})
			}
			task.Say(task.Line{"partition": m.Partition, "offset": m.Offset, "timestamp": m.Time.UnixMilli(), "headers": headers,
				"key": task.Text(m.Key), "value": task.Text(m.Value)})
			read = append(read, m)
		case err := <-failures:
			return err
		case <-ctx.Done():
			return errors.New("records are missing, and the client reports no error")
		case <-quiet:
			if t.Commit {
				if err := readers[0].CommitMessages(ctx, read...); err != nil {
					return err
				}
				task.Say(task.Line{"committed": true})
			}
			return nil
		}
	}
}

func main() {
	task.Run(func(t task.Task) error {
		if t.Do == "produce" && t.Settings["enable.idempotence"] == "true" {
			task.Say(task.Line{"unsupported": "kafka-go has no idempotent producer"})
		} else if t.Do == "produce" {
			return produce(t)
		} else if t.Do == "consume" && t.Group != nil && t.Settings["auto.offset.reset"] == "none" {
			task.Say(task.Line{"unsupported": "groups of kafka-go have no auto.offset.reset=none"})
		} else if t.Do == "consume" {
			return consume(t)
		} else {
			task.Say(task.Line{"unsupported": "kafka-go has no transactional producer"})
		}
		return nil
	})
}
