// franz-go under `kwire conformance client --stdin`: go build -o client ./franz-go && kwire conformance client --stdin -- ./client
package main

import (
	"context"
	"strconv"
	"strings"
	"time"

	"kwire.example/client/task"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

func client(t task.Task, more ...kgo.Opt) (*kgo.Client, error) {
	s := t.Settings
	options := []kgo.Opt{
		kgo.SeedBrokers(t.Bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequestTimeoutOverhead(t.Ms("request.timeout.ms")),
		kgo.RetryBackoffFn(func(int) time.Duration { return t.Ms("retry.backoff.ms") }), kgo.RecordDeliveryTimeout(t.Ms("delivery.timeout.ms")),
		kgo.FetchMaxWait(t.Ms("fetch.max.wait.ms")), kgo.MetadataMinAge(50 * time.Millisecond), kgo.ProducerBatchMaxBytes(4 << 20),
		kgo.SessionTimeout(t.Ms("session.timeout.ms")), kgo.HeartbeatInterval(t.Ms("heartbeat.interval.ms")),
	}
	if s["enable.idempotence"] != "true" && t.TransactionalID == "" {
		options = append(options, kgo.DisableIdempotentWrite())
	}
	if s["acks"] == "0" {
		options = append(options, kgo.RequiredAcks(kgo.NoAck()))
	}
	codecs := map[string]kgo.CompressionCodec{"gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression()}
	if codec, ok := codecs[s["compression.type"]]; ok {
		options = append(options, kgo.ProducerBatchCompression(codec))
	} else {
		options = append(options, kgo.ProducerBatchCompression(kgo.NoCompression()))
	}
	if n, err := strconv.Atoi(s["max.partition.fetch.bytes"]); err == nil {
		options = append(options, kgo.FetchMaxPartitionBytes(int32(n)))
	}
	if s["isolation.level"] == "read_committed" {
		options = append(options, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	}
	if s["group.instance.id"] != "" {
		options = append(options, kgo.InstanceID(s["group.instance.id"]))
	}
	if s["auto.offset.reset"] == "none" {
		options = append(options, kgo.ConsumeResetOffset(kgo.NoResetOffset()))
	} else {
		options = append(options, kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	}
	switch user, password := s["sasl.username"], s["sasl.password"]; s["sasl.mechanism"] {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: user, Pass: password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: user, Pass: password}.AsSha512Mechanism()))
	}
	return kgo.NewClient(append(options, more...)...)
}

func send(c *kgo.Client, t task.Task, records []task.Record, first int) {
	for i, each := range records {
		number := first + i
		value := each.Content()
		r := &kgo.Record{Topic: t.Topic, Partition: each.Partition, Key: task.Bytes(each.Key), Value: value}
		for _, h := range each.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: *h[0], Value: task.Bytes(h[1])})
		}
		c.Produce(context.Background(), r, func(r *kgo.Record, err error) {
			if err != nil {
				task.Say(task.Line{"failed": number, "error": err.Error()})
			} else {
				task.Say(task.Line{"acked": number, "offset": r.Offset})
			}
		})
	}
	c.Flush(context.Background())
}

func run(t task.Task) error {
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	defer cancel()
	var more []kgo.Opt
	if t.Do == "transact" {
		more = append(more, kgo.TransactionalID(t.TransactionalID))
	} else if t.Do == "consume" && t.Group != nil {
		more = append(more, kgo.ConsumerGroup(*t.Group), kgo.ConsumeTopics(t.Topic), kgo.DisableAutoCommit())
	} else if t.Do == "consume" {
		at := map[int32]kgo.Offset{}
		for _, p := range t.Partitions {
			at[p] = kgo.NewOffset().AtStart()
			if t.Offset != nil {
				at[p] = kgo.NewOffset().At(*t.Offset)
			}
		}
		more = append(more, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{t.Topic: at}))
	}
	c, err := client(t, more...)
	if err != nil {
		return err
	}
	defer c.Close()
	switch t.Do {
	case "produce":
		send(c, t, t.Records, 0)
	case "transact":
		number := 0
		for _, each := range t.Transactions {
			if each.Offsets != nil {
				task.Say(task.Line{"unsupported": "offsets of a group that the client is not a member of"})
				return nil
			}
			if err := c.BeginTransaction(); err != nil {
				return err
			}
			send(c, t, each.Records, number)
			number += len(each.Records)
			if err := c.EndTransaction(ctx, kgo.TransactionEndTry(each.End == "commit")); err != nil {
				return err
			}
			task.Say(task.Line{"ended": each.End})
		}
	default:
		left := t.Count
		for quiet := time.Now(); left > 0 || time.Since(quiet) < 300*time.Millisecond; {
			pause, stop := context.WithTimeout(ctx, 100*time.Millisecond)
			fetches := c.PollFetches(pause)
			stop()
			for _, failed := range fetches.Errors() {
				lost := strings.HasPrefix(failed.Err.Error(), "unable to join group session") // the client joins again
				if failed.Err != context.DeadlineExceeded && !lost {
					return failed.Err
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fetches.EachRecord(func(r *kgo.Record) {
				headers := [][]any{}
				for _, h := range r.Headers {
					headers = append(headers, []any{h.Key, task.Text(h.Value)})
				}
				task.Say(task.Line{"partition": r.Partition, "offset": r.Offset, "timestamp": r.Timestamp.UnixMilli(), "headers": headers, "key": task.Text(r.Key), "value": task.Text(r.Value)})
				left, quiet = left-1, time.Now()
			})
		}
		if t.Commit {
			if err := c.CommitUncommittedOffsets(ctx); err != nil {
				return err
			}
			task.Say(task.Line{"committed": true})
		}
	}
	return nil
}

func main() { task.Run(run) }
