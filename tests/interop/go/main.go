// Franz-go against a broker: produce, consume in a group, transactions, administration. Prints what it read, as JSON.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func consume(ctx context.Context, servers, topic, group string, count int, options ...kgo.Opt) []string {
	options = append(options, kgo.SeedBrokers(servers), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	client, err := kgo.NewClient(options...)
	must(err)
	defer client.Close()
	found := []string{}
	for len(found) < count {
		fetches := client.PollFetches(ctx)
		must(fetches.Err0())
		fetches.EachRecord(func(r *kgo.Record) { found = append(found, string(r.Value)) })
	}
	must(client.CommitUncommittedOffsets(ctx))
	sort.Strings(found)
	return found
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	servers := os.Args[1]
	admin, err := kgo.NewClient(kgo.SeedBrokers(servers))
	must(err)
	defer admin.Close()
	manager := kadm.NewClient(admin)
	_, err = manager.CreateTopics(ctx, 3, 1, nil, "go", "go-tx")
	must(err)

	producer, err := kgo.NewClient(kgo.SeedBrokers(servers), kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	must(err)
	for n := 0; n < 1000; n++ {
		record := &kgo.Record{Topic: "go", Key: []byte(fmt.Sprint(n)), Value: []byte(fmt.Sprintf("v%04d", n)),
			Headers: []kgo.RecordHeader{{Key: "h", Value: []byte("x")}}}
		producer.Produce(ctx, record, func(_ *kgo.Record, err error) { must(err) })
	}
	must(producer.Flush(ctx))
	producer.Close()

	tx, err := kgo.NewClient(kgo.SeedBrokers(servers), kgo.TransactionalID("go-tx"))
	must(err)
	for n, commit := range []bool{true, false, true} {
		must(tx.BeginTransaction())
		must(tx.ProduceSync(ctx, &kgo.Record{Topic: "go-tx", Value: []byte(fmt.Sprint(n))}).FirstErr())
		must(tx.EndTransaction(ctx, kgo.TransactionEndTry(commit)))
	}
	tx.Close()

	read := consume(ctx, servers, "go", "go-group", 1000)
	committed := consume(ctx, servers, "go-tx", "go-tx-group", 2, kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	offsets, err := manager.FetchOffsets(ctx, "go-group")
	must(err)
	var total int64
	offsets.Each(func(o kadm.OffsetResponse) { total += o.At })
	must(json.NewEncoder(os.Stdout).Encode(map[string]any{"first": read[0], "last": read[999], "count": len(read),
		"committed": committed, "offsets": total}))
}
