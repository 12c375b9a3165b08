// franz-go's kmsg as a runner: go build -o runner . && kwire conformance codec -- ./runner
//
// Names of kmsg's fields differ from Kafka's, so that only bytes of decoded and encoded objects are compared.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/twmb/franz-go/pkg/kbin"
	"github.com/twmb/franz-go/pkg/kmsg"
)

type task struct {
	Op, Chapter, Type, Bytes string
	Version                  int16
}

type message interface {
	SetVersion(int16)
	MaxVersion() int16
	ReadFrom([]byte) error
	AppendTo([]byte) []byte
}

func run(t task) (response map[string]any) {
	defer func() {
		if fault := recover(); fault != nil {
			response = map[string]any{"rejected": fmt.Sprint("panic: ", fault)}
		}
	}()
	data, _ := hex.DecodeString(t.Bytes)
	if reader := (&kbin.Reader{Src: data}); t.Op == "decode" && strings.HasPrefix(t.Type, "VAR") {
		value := any(reader.Varint)
		if t.Type == "VARLONG" {
			value = reader.Varlong()
		} else {
			value = reader.Varint()
		}
		if reader.Complete() != nil || len(reader.Src) > 0 {
			return map[string]any{"rejected": "not a varint"}
		}
		return map[string]any{"value": value}
	}
	for key := int16(0); key <= kmsg.MaxKey && t.Chapter == "messages" && t.Op == "decode"; key++ {
		for _, m := range []message{kmsg.RequestForKey(key), kmsg.ResponseForKey(key)} {
			if name := strings.TrimPrefix(fmt.Sprintf("%T", m), "*kmsg."); name != t.Type || t.Version > m.MaxVersion() {
				continue
			}
			m.SetVersion(t.Version)
			if err := m.ReadFrom(data); err != nil {
				return map[string]any{"rejected": err.Error()}
			}
			return map[string]any{"bytes": hex.EncodeToString(m.AppendTo(nil))}
		}
	}
	return map[string]any{"unsupported": "only varints, requests and responses"}
}

func main() {
	in, out := bufio.NewReader(os.Stdin), bufio.NewWriter(os.Stdout)
	for size := uint32(0); binary.Read(in, binary.BigEndian, &size) == nil; out.Flush() {
		text := make([]byte, size)
		io.ReadFull(in, text)
		var t task
		json.Unmarshal(text, &t)
		response, _ := json.Marshal(run(t))
		binary.Write(out, binary.BigEndian, uint32(len(response)))
		out.Write(response)
	}
}
