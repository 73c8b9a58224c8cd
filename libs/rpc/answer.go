package rpc

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	toolv1 "github.com/bullpenhq/bullpen/gen/bullpen/tool/v1"
)

// AnswerJSON writes a tool's answer as a model reads it: snake_case names, no space, and what is empty is shown, so that nobody takes it for
// forgotten. The rows of a field that its contract calls sparse leave out what is empty: of many rows that would be most of the answer.
func AnswerJSON(m proto.Message) ([]byte, error) {
	answer := m.ProtoReflect()
	var sparse []protoreflect.FieldDescriptor
	for n, fields := 0, answer.Descriptor().Fields(); n < fields.Len(); n++ {
		if f := fields.Get(n); answer.Has(f) && f.IsList() && f.Message() != nil && proto.GetExtension(f.Options(), toolv1.E_Sparse).(bool) {
			sparse = append(sparse, f)
		}
	}
	if len(sparse) == 0 {
		return compact(m, protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true})
	}
	// The rest is written as always, and each list of rows put into the place that it has there as an empty one.
	rest := answer.New()
	answer.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		rest.Set(f, v)
		return true
	})
	for _, f := range sparse {
		rest.Clear(f)
	}
	text, err := compact(rest.Interface(), protojson.MarshalOptions{UseProtoNames: true, EmitDefaultValues: true})
	if err != nil {
		return nil, err
	}
	return withRows(text, answer, sparse)
}

// withRows fills the empty lists of an answer's text with rows that leave out what is empty.
func withRows(text []byte, answer protoreflect.Message, sparse []protoreflect.FieldDescriptor) ([]byte, error) {
	rows := map[string]protoreflect.List{}
	for _, f := range sparse {
		rows[string(f.Name())] = answer.Get(f).List()
	}
	var out bytes.Buffer
	parts := json.NewDecoder(bytes.NewReader(text))
	if _, err := parts.Token(); err != nil { // the opening brace
		return nil, err
	}
	for before := byte('{'); parts.More(); before = ',' {
		name, err := parts.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := parts.Decode(&value); err != nil {
			return nil, err
		}
		fmt.Fprintf(&out, "%c%q:", before, name)
		list, filled := rows[name.(string)]
		if !filled {
			out.Write(value)
			continue
		}
		for n, separator := 0, byte('['); n < list.Len(); n, separator = n+1, ',' {
			row, err := compact(list.Get(n).Message().Interface(), protojson.MarshalOptions{UseProtoNames: true})
			if err != nil {
				return nil, err
			}
			out.WriteByte(separator)
			out.Write(row)
		}
		out.WriteByte(']')
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

func compact(m proto.Message, how protojson.MarshalOptions) ([]byte, error) {
	text, err := how.Marshal(m)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	// protojson's spacing is random on purpose.
	err = json.Compact(&out, text)
	return out.Bytes(), err
}
