package hostiletest

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

func (s *server) list(m message) {
	effect("list")
	var params struct {
		Cursor *string `json:"cursor"`
	}
	_ = json.Unmarshal(m.Params, &params)
	if s.modes["mute_list"] {
		return
	}
	tools := []string{
		tool("echo"), tool("env"), tool("big"), tool("hang"), tool("progress"), tool("crash"), tool("crash_after_effect"), tool("effect"),
		tool("storm"), tool("change"), tool("twice"), tool("mislabelled"), tool("partial"), tool("release"), tool("pid"),
		`{"name":"rich","inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"annotations":{"readOnlyHint":true},"icons":[{"src":"x"}],"_meta":{"k":9007199254740993},"unknown":1.50}`,
	}
	if s.modes["duplicates"] {
		tools = append(tools, tool("echo"))
	}
	if s.modes["null_schema"] {
		tools = append(tools, `{"name":"shapeless","inputSchema":null}`, `null`, `{"description":"nameless"}`)
	}
	for mode, size := range map[string]int{"crowd": 5000, "multitude": 20_000} {
		if s.modes[mode] {
			for n := len(tools); n < size; n++ {
				tools = append(tools, tool(fmt.Sprintf("tool_%d", n)))
			}
		}
	}
	if s.modes["shapes"] {
		tools = append(tools,
			`{"name":"any_of","inputSchema":{"type":"object","anyOf":[{"required":["a"]},{"required":["b"]}]}}`,
			`{"name":"recursive","inputSchema":{"type":"object","properties":{"child":{"$ref":"#"}}}}`,
			fmt.Sprintf(`{"name":"remote","inputSchema":{"type":"object","properties":{"x":{"$ref":%q}}}}`, os.Getenv("HOSTILE_REF")),
		)
	}
	s.mu.Lock()
	extra := s.extra
	s.mu.Unlock()
	if extra > 0 {
		tools = append(tools, tool("extra"))
	}
	switch {
	case s.modes["repeated_cursor"]:
		s.answer(m, fmt.Sprintf(`{"tools":[%s],"nextCursor":"again"}`, strings.Join(tools, ",")))
	case s.modes["empty_cursor"] && params.Cursor == nil:
		s.answer(m, fmt.Sprintf(`{"tools":[%s],"nextCursor":""}`, strings.Join(tools[:2], ",")))
	case s.modes["empty_cursor"]:
		s.answer(m, fmt.Sprintf(`{"tools":[%s]}`, strings.Join(tools[2:], ",")))
	case s.modes["pages"]:
		at := 0
		if params.Cursor != nil {
			if _, err := fmt.Sscan(*params.Cursor, &at); err != nil {
				panic(err)
			}
		}
		if end := at + 2; end < len(tools) {
			s.answer(m, fmt.Sprintf(`{"tools":[%s],"nextCursor":"%d"}`, strings.Join(tools[at:end], ","), end))
			return
		}
		s.answer(m, fmt.Sprintf(`{"tools":[%s]}`, strings.Join(tools[at:], ",")))
	default:
		s.answer(m, fmt.Sprintf(`{"resultType":"complete","tools":[%s]}`, strings.Join(tools, ",")))
	}
}

func tool(name string) string {
	return fmt.Sprintf(`{"name":%q,"inputSchema":{"type":"object"}}`, name)
}
