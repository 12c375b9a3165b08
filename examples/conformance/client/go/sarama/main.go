// sarama under `kwire conformance client --stdin`: go build -o client ./sarama && kwire conformance client --stdin -- ./client
package main

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"time"

	"kwire.example/client/task"

	"github.com/IBM/sarama"
)

func config(t task.Task) *sarama.Config {
	c, s := sarama.NewConfig(), t.Settings
	c.Version = sarama.MaxVersion
	timeout, backoff := t.Ms("request.timeout.ms"), t.Ms("retry.backoff.ms")
	c.Net.DialTimeout, c.Net.ReadTimeout, c.Net.WriteTimeout = timeout, timeout, timeout
	c.Metadata.Retry.Max, c.Metadata.Retry.Backoff = 20, backoff
	c.Metadata.AllowAutoTopicCreation = false
	c.Producer.Return.Successes = true
	c.Producer.Partitioner = sarama.NewManualPartitioner
	c.Producer.Retry.Max, c.Producer.Retry.Backoff, c.Producer.Timeout = 10, backoff, timeout
	c.Producer.Transaction.Retry.Backoff = backoff
	c.Producer.Flush.Frequency = t.Ms("linger.ms")
	acks, err := strconv.Atoi(s["acks"])
	if err != nil {
		acks = int(sarama.WaitForAll)
	}
	c.Producer.RequiredAcks = sarama.RequiredAcks(acks)
	if s["enable.idempotence"] == "true" || t.TransactionalID != "" {
		c.Producer.Idempotent, c.Net.MaxOpenRequests, c.Producer.Transaction.ID = true, 1, t.TransactionalID
	} else if s["max.in.flight.requests.per.connection"] == "1" {
		c.Net.MaxOpenRequests = 1
	}
	c.Producer.Compression.UnmarshalText([]byte(s["compression.type"]))
	if n, err := strconv.Atoi(s["max.request.size"]); err == nil {
		c.Producer.MaxMessageBytes = n
	}
	c.Consumer.MaxWaitTime, c.Consumer.Retry.Backoff = t.Ms("fetch.max.wait.ms"), backoff
	if n, err := strconv.Atoi(s["max.partition.fetch.bytes"]); err == nil {
		c.Consumer.Fetch.Default = int32(n)
	}
	if s["isolation.level"] == "read_committed" {
		c.Consumer.IsolationLevel = sarama.ReadCommitted
	}
	c.Consumer.Return.Errors, c.Consumer.Offsets.AutoCommit.Enable = true, t.Commit // Commit() sends once, and does not retry
	c.Consumer.Offsets.Initial = sarama.OffsetOldest
	c.Consumer.Group.InstanceId = s["group.instance.id"]
	c.Consumer.Group.Session.Timeout, c.Consumer.Group.Heartbeat.Interval = t.Ms("session.timeout.ms"), t.Ms("heartbeat.interval.ms")
	c.Consumer.Group.Rebalance.Timeout, c.Consumer.Group.Rebalance.Retry.Backoff = t.Ms("rebalance.timeout.ms"), backoff
	c.Net.SASL.Enable, c.Net.SASL.User, c.Net.SASL.Password = s["sasl.mechanism"] != "", s["sasl.username"], s["sasl.password"]
	c.Net.SASL.Mechanism = sarama.SASLMechanism(s["sasl.mechanism"])
	return c
}

// send sends records and prints what came of each.
func send(p sarama.AsyncProducer, t task.Task, records []task.Record, first int) {
	done := make(chan bool)
	go func() {
		for range records {
			select {
			case m := <-p.Successes():
				task.Say(task.Line{"acked": m.Metadata, "offset": m.Offset})
			case e := <-p.Errors():
				task.Say(task.Line{"failed": e.Msg.Metadata, "error": e.Err.Error()})
			}
		}
		close(done)
	}()
	for i, each := range records {
		m := &sarama.ProducerMessage{Topic: t.Topic, Partition: each.Partition, Metadata: first + i}
		if value := each.Content(); value != nil {
			m.Value = sarama.ByteEncoder(value)
		}
		if each.Key != nil {
			m.Key = sarama.StringEncoder(*each.Key)
		}
		for _, h := range each.Headers {
			m.Headers = append(m.Headers, sarama.RecordHeader{Key: task.Bytes(h[0]), Value: task.Bytes(h[1])})
		}
		p.Input() <- m
	}
	<-done
}

func write(t task.Task) error {
	p, err := sarama.NewAsyncProducer([]string{t.Bootstrap}, config(t))
	if err != nil {
		return err
	}
	defer p.Close()
	if t.Do == "produce" {
		send(p, t, t.Records, 0)
		return nil
	}
	number := 0
	for _, each := range t.Transactions {
		if err := p.BeginTxn(); err != nil {
			return err
		}
		send(p, t, each.Records, number)
		number += len(each.Records)
		if at := each.Offsets; at != nil {
			offsets := map[string][]*sarama.PartitionOffsetMetadata{t.Topic: {{Partition: at.Partition, Offset: at.Offset}}}
			if err := p.AddOffsetsToTxn(offsets, at.Group); err != nil {
				return err
			}
		}
		end := p.AbortTxn
		if each.End == "commit" {
			end = p.CommitTxn
		}
		if err := end(); err != nil {
			return err
		}
		task.Say(task.Line{"ended": each.End})
	}
	return nil
}

func show(m *sarama.ConsumerMessage) {
	headers := [][]any{}
	for _, h := range m.Headers {
		headers = append(headers, []any{string(h.Key), task.Text(h.Value)})
	}
	task.Say(task.Line{"partition": m.Partition, "offset": m.Offset, "timestamp": m.Timestamp.UnixMilli(), "headers": headers,
		"key": task.Text(m.Key), "value": task.Text(m.Value)})
}

func read(t task.Task) error {
	c, err := sarama.NewConsumer([]string{t.Bootstrap}, config(t))
	if err != nil {
		return err
	}
	defer c.Close()
	messages, failures := make(chan *sarama.ConsumerMessage), make(chan error, 100)
	for _, number := range t.Partitions {
		at := sarama.OffsetOldest
		if t.Offset != nil {
			at = *t.Offset
		}
		p, err := c.ConsumePartition(t.Topic, number, at)
		if errors.Is(err, sarama.ErrOffsetOutOfRange) && t.Settings["auto.offset.reset"] == "earliest" {
			p, err = c.ConsumePartition(t.Topic, number, sarama.OffsetOldest)
		}
		if err != nil {
			return err
		}
		defer p.AsyncClose()
		go func() {
			for m := range p.Messages() {
				messages <- m
			}
		}()
		go func() {
			for e := range p.Errors() {
				failures <- e
			}
		}()
	}
	deadline := time.After(10 * time.Second)
	var last error
	for left := t.Count; ; {
		var quiet <-chan time.Time
		if left <= 0 {
			quiet = time.After(300 * time.Millisecond)
		}
		select {
		case m := <-messages:
			show(m)
			left--
		case last = <-failures: // the client goes on
		case <-quiet:
			return nil
		case <-deadline:
			return errors.Join(errors.New("records are missing"), last)
		}
	}
}

type member struct {
	t      task.Task
	left   int
	cancel context.CancelFunc
}

func (m *member) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }
func (m *member) ConsumeClaim(s sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		var quiet <-chan time.Time
		if m.left <= 0 {
			quiet = time.After(300 * time.Millisecond)
		}
		select {
		case each, ok := <-claim.Messages():
			if !ok {
				return nil
			}
			show(each)
			m.left--
			s.MarkMessage(each, "")
		case <-quiet:
			m.cancel() // the offset is committed when the session ends
			return nil
		case <-s.Context().Done():
			return nil
		}
	}
}

func join(t task.Task) error {
	g, err := sarama.NewConsumerGroup([]string{t.Bootstrap}, *t.Group, config(t))
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 12*time.Second)
	defer cancel()
	failures := make(chan error, 100)
	go func() {
		for e := range g.Errors() {
			failures <- e
		}
	}()
	m := &member{t: t, left: t.Count, cancel: cancel}
	for ctx.Err() == nil {
		if err := g.Consume(ctx, []string{t.Topic}, m); err != nil {
			g.Close()
			return err
		}
	}
	g.Close()
	err = last(failures)
	if m.left > 0 {
		return errors.Join(errors.New("records are missing"), err)
	} else if err == nil && t.Commit {
		task.Say(task.Line{"committed": true})
	}
	return err
}

func last(failures chan error) (found error) {
	for {
		select {
		case found = <-failures:
		default:
			return found
		}
	}
}

func main() {
	task.Run(func(t task.Task) error {
		if strings.HasPrefix(t.Settings["sasl.mechanism"], "SCRAM") {
			task.Say(task.Line{"unsupported": "sarama leaves SCRAM to the application"})
			return nil
		} else if t.Do != "consume" {
			return write(t)
		} else if t.Group == nil {
			return read(t)
		}
		if t.Settings["auto.offset.reset"] == "none" {
			task.Say(task.Line{"unsupported": "groups of sarama have no auto.offset.reset=none"})
			return nil
		}
		return join(t)
	})
}
