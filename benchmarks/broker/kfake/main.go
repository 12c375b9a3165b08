// Kfake, the fake broker of franz-go, as a server. Prints host:port. Argument: partitions of a new topic.
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kfake"
)

func main() {
	partitions, err := strconv.Atoi(os.Args[1])
	if err != nil {
		panic(err)
	}
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.AllowAutoTopicCreation(), kfake.DefaultNumPartitions(partitions))
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Join(cluster.ListenAddrs(), ","))
	select {}
}
