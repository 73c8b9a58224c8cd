// Command tinyserver is an MCP server over standard streams that starts in a millisecond, for tests that start many.
//
// It speaks the handshake of the older revisions. Its tools append their name and the process id to the file that TINY_EFFECTS
// names; of `read`, which says that it only reads, and of `write`, which says nothing, the first call of all is never answered.
// `ask` asks its caller for input before it answers.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"os"
)

const tools = `{"tools":[{"name":"echo","inputSchema":{"type":"object"}},` +
	`{"name":"read","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true}},` +
	`{"name":"write","inputSchema":{"type":"object"}},` +
	`{"name":"ask","inputSchema":{"type":"object"}}]}`

const question = `{"jsonrpc":"2.0","id":"question","method":"elicitation/create",` +
	`"params":{"message":"Who?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`

func main() {
	in := bufio.NewReader(os.Stdin)
	var asking json.RawMessage // the id of the call that waits for input
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params struct {
				Name string `json:"name"`
			} `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil || m.ID == nil {
			continue
		}
		switch m.Method {
		case "initialize":
			answer(m.ID, `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"tiny","version":"1"}}`)
		case "tools/list":
			answer(m.ID, `"result":`+tools)
		case "":
			answer(asking, fmt.Sprintf(`"result":{"content":[{"type":"text","text":"%d"}]}`, os.Getpid()))
		case "tools/call":
			if m.Params.Name == "ask" {
				asking = m.ID
				fmt.Println(question)
				continue
			}
			if first := effect(m.Params.Name); !first || m.Params.Name == "echo" {
				answer(m.ID, fmt.Sprintf(`"result":{"content":[{"type":"text","text":"%d"}]}`, os.Getpid()))
			}
		default:
			answer(m.ID, `"error":{"code":-32601,"message":"unknown method"}`)
		}
	}
}

func answer(id json.RawMessage, rest string) {
	fmt.Printf("{\"jsonrpc\":\"2.0\",\"id\":%s,%s}\n", id, rest)
}

// effect writes that a tool was called, and reports whether it was for the first time.
func effect(tool string) bool {
	name := os.Getenv("TINY_EFFECTS")
	if name == "" {
		return false
	}
	before, _ := os.ReadFile(name) // there is none at first
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		panic(err)
	}
	defer f.Close()
	fmt.Fprintln(f, tool, os.Getpid())
	return !bytes.Contains(before, []byte(tool+" "))
}
