package orders

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var servers string

func TestMain(m *testing.M) {
	broker := exec.Command("kwire", "serve", "--port", "0", "--topic", "orders", "--until", "stdin")
	broker.Stderr = os.Stderr
	stdin, _ := broker.StdinPipe() // the broker also ends if this process is killed
	stdout, _ := broker.StdoutPipe()
	if err := broker.Start(); err != nil {
		panic(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		panic(err) // the reason is on standard error
	}
	servers = strings.TrimPrefix(strings.TrimSpace(line), "BROKERS=")
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
