package orders

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var servers, control string

func TestMain(m *testing.M) {
	broker := exec.Command("kwire", "serve", "--port", "0", "--control", "0", "--topic", "orders", "--until", "stdin")
	broker.Stderr = os.Stderr
	stdin, _ := broker.StdinPipe() // the broker also ends if this process is killed
	stdout, _ := broker.StdoutPipe()
	if err := broker.Start(); err != nil {
		panic(err)
	}
	output := bufio.NewScanner(stdout)
	for _, line := range []struct {
		name  string
		value *string
	}{{"BROKERS=", &servers}, {"CONTROL=", &control}} {
		if !output.Scan() {
			panic("kwire serve did not start") // the reason is on standard error
		}
		*line.value = strings.TrimPrefix(output.Text(), line.name)
	}
	code := m.Run()
	stdin.Close()
	if err := broker.Wait(); err != nil {
		panic(err)
	}
	os.Exit(code)
}

func TestAnOrderArrives(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	client, err := kgo.NewClient(kgo.SeedBrokers(servers), kgo.ConsumeTopics("orders"))
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	order := &kgo.Record{Topic: "orders", Key: []byte("alice"), Value: []byte("one book")}
	if err := client.ProduceSync(ctx, order).FirstErr(); err != nil {
		t.Fatal(err)
	}
	fetches := client.PollFetches(ctx)
	if err := fetches.Err(); err != nil {
		t.Fatal(err)
	}
	if value := string(fetches.Records()[0].Value); value != "one book" {
		t.Fatalf("got %q", value)
	}
}

func TestOnePartitionFailsAndTheOthersDoNot(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	post(t, "/topics", `{"name": "payments", "partitions": 2}`)
	fault := post(t, "/faults", `{"effect": "fail", "api": "Produce", "error": "NOT_LEADER_OR_FOLLOWER",
		"topic": "payments", "partition": 1, "times": 2}`)
	client, err := kgo.NewClient(kgo.SeedBrokers(servers), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MetadataMinAge(100*time.Millisecond)) // it looks for the new leader sooner
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	payments := []*kgo.Record{
		{Topic: "payments", Partition: 0, Value: []byte("one")},
		{Topic: "payments", Partition: 1, Value: []byte("two")},
	}
	if err := client.ProduceSync(ctx, payments...).FirstErr(); err != nil {
		t.Fatal(err)
	}
	shown := post(t, fmt.Sprintf("/faults/%v/wait", fault["id"]), `{"hits": 2}`) // fails unless it happened twice
	if shown["active"] != false {
		t.Fatalf("got %v", shown)
	}
}

func post(t *testing.T, path, body string) map[string]any {
	t.Helper()
	response, err := http.Post(control+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var result map[string]any
	if err := json.NewDecoder(response.Body).Decode(&result); err != nil || response.StatusCode != 200 {
		t.Fatalf("%s: %s %v %v", path, response.Status, result, err)
	}
	return result
}
