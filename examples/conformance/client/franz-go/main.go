// franz-go under `kwire conformance client --stdin`: go build -o client . && kwire conformance client --stdin -- ./client
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"
)

type record struct {
	Partition  int32
	Key, Value *string
	Headers    [][]*string
	Repeat     int
	WaitMs     int `json:"wait_ms"`
}

type task struct {
	ID, Do, Bootstrap, Topic string
	Settings                 map[string]string
	Records                  []record
	Partitions               []int32
	Offset                   *int64
	Group                    *string
	Commit                   bool
	Count                    int
	TransactionalID          string `json:"transactional_id"`
	Transactions             []struct {
		Records []record
		End     string
		Offsets *struct{}
	}
}

var mutex sync.Mutex

func say(line map[string]any) {
	mutex.Lock()
	defer mutex.Unlock()
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func bytes(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

func text(data []byte) any {
	if data == nil {
		return nil
	}
	return string(data)
}

func client(t task, more ...kgo.Opt) (*kgo.Client, error) {
	s := t.Settings
	ms := func(name string) time.Duration {
		n, _ := strconv.Atoi(s[name])
		return time.Duration(n) * time.Millisecond
	}
	options := []kgo.Opt{
		kgo.SeedBrokers(t.Bootstrap), kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.RequestTimeoutOverhead(ms("request.timeout.ms")),
		kgo.RetryBackoffFn(func(int) time.Duration { return ms("retry.backoff.ms") }), kgo.RecordDeliveryTimeout(ms("delivery.timeout.ms")),
		kgo.FetchMaxWait(ms("fetch.max.wait.ms")), kgo.MetadataMinAge(50 * time.Millisecond), kgo.ProducerBatchMaxBytes(4 << 20),
		kgo.SessionTimeout(ms("session.timeout.ms")), kgo.HeartbeatInterval(ms("heartbeat.interval.ms")),
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

func send(c *kgo.Client, t task, records []record, first int) {
	for i, each := range records {
		number := first + i
		time.Sleep(time.Duration(each.WaitMs) * time.Millisecond)
		value := bytes(each.Value)
		if each.Repeat > 0 {
			value = []byte(strings.Repeat(*each.Value, each.Repeat))
		}
		r := &kgo.Record{Topic: t.Topic, Partition: each.Partition, Key: bytes(each.Key), Value: value}
		for _, h := range each.Headers {
			r.Headers = append(r.Headers, kgo.RecordHeader{Key: *h[0], Value: bytes(h[1])})
		}
		c.Produce(context.Background(), r, func(r *kgo.Record, err error) {
			if err != nil {
				say(map[string]any{"failed": number, "error": err.Error()})
			} else {
				say(map[string]any{"acked": number, "offset": r.Offset})
			}
		})
	}
	c.Flush(context.Background())
}

func run(t task) error {
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
				say(map[string]any{"unsupported": "offsets of a group that the client is not a member of"})
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
			say(map[string]any{"ended": each.End})
		}
	default:
		left := t.Count
		for quiet := time.Now(); left > 0 || time.Since(quiet) < 300*time.Millisecond; {
			pause, stop := context.WithTimeout(ctx, 100*time.Millisecond)
			fetches := c.PollFetches(pause)
			stop()
			for _, failed := range fetches.Errors() {
				var lost *kgo.ErrGroupSession // the client joins again
				if failed.Err != context.DeadlineExceeded && !errors.As(failed.Err, &lost) {
					return failed.Err
				}
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			fetches.EachRecord(func(r *kgo.Record) {
				headers := [][]any{}
				for _, h := range r.Headers {
					headers = append(headers, []any{h.Key, text(h.Value)})
				}
				say(map[string]any{"partition": r.Partition, "offset": r.Offset, "timestamp": r.Timestamp.UnixMilli(), "headers": headers, "key": text(r.Key), "value": text(r.Value)})
				left, quiet = left-1, time.Now()
			})
		}
		if t.Commit {
			if err := c.CommitUncommittedOffsets(ctx); err != nil {
				return err
			}
			say(map[string]any{"committed": true})
		}
	}
	return nil
}

func main() {
	lines := bufio.NewReader(os.Stdin)
	if given := os.Getenv("KWIRE_TASK"); given != "" {
		lines = bufio.NewReader(strings.NewReader(given + "\n"))
	}
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var t task
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			panic(err)
		}
		if err := run(t); err != nil {
			say(map[string]any{"error": err.Error()})
		}
		say(map[string]any{"done": t.ID})
	}
}
