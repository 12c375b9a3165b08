// Package task reads tasks of `kwire conformance client` and prints what came of them.
package task

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
)

type Record struct {
	Partition  int32
	Key, Value *string
	Headers    [][]*string
	Repeat     int
	WaitMs     int `json:"wait_ms"`
}

type Task struct {
	ID, Do, Bootstrap, Topic string
	Settings                 map[string]string
	Records                  []Record
	Partitions               []int32
	Offset                   *int64
	Group                    *string
	Commit                   bool
	Count                    int
	TransactionalID          string `json:"transactional_id"`
	Transactions             []struct {
		Records []Record
		End     string
		Offsets *struct {
			Group     string
			Partition int32
			Offset    int64
		}
	}
}

type Line map[string]any

var mutex sync.Mutex

func Say(line Line) {
	mutex.Lock()
	defer mutex.Unlock()
	text, _ := json.Marshal(line)
	fmt.Println(string(text))
}

func Bytes(text *string) []byte {
	if text == nil {
		return nil
	}
	return []byte(*text)
}

func Text(data []byte) any {
	if data == nil {
		return nil
	}
	return string(data)
}

// Content waits as long as the record asks for, and returns its value.
func (r Record) Content() []byte {
	time.Sleep(time.Duration(r.WaitMs) * time.Millisecond)
	if r.Repeat > 0 {
		return []byte(strings.Repeat(*r.Value, r.Repeat))
	}
	return Bytes(r.Value)
}

func (t Task) Ms(name string) time.Duration {
	n, _ := strconv.Atoi(t.Settings[name])
	return time.Duration(n) * time.Millisecond
}

// Run runs each task of the environment or of the standard input.
func Run(run func(Task) error) {
	lines := bufio.NewReader(os.Stdin)
	if given := os.Getenv("KWIRE_TASK"); given != "" {
		lines = bufio.NewReader(strings.NewReader(given + "\n"))
	}
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		var t Task
		if err := json.Unmarshal([]byte(line), &t); err != nil {
			panic(err)
		}
		if err := run(t); err != nil {
			Say(Line{"error": err.Error()})
		}
		Say(Line{"done": t.ID})
	}
}
