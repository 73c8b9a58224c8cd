package api

import (
	"encoding/json"
	"strconv"
	"strings"

	"google.golang.org/protobuf/types/known/structpb"

	trackerv1 "github.com/bullpenhq/bullpen/gen/bullpen/tracker/v1"
	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/tracker/internal/query"
)

// arguments answers what a call says itself, in the keys of the grammar.
func arguments(req *trackerv1.ListWorkItemsRequest) (query.Params, error) {
	p := query.Params{}
	for name, value := range map[string]string{
		"assignee": req.GetAssignee(), "project": req.GetProject(), "status": strings.Join(req.GetStatus(), ","), "text": req.GetText(),
		"type": strings.Join(req.GetType(), ","), "priority": strings.Join(req.GetPriority(), ","), "parent": req.GetParent(), "reporter": req.GetReporter(),
		"sort": req.GetSort(), "label": req.GetLabel(), "due": req.GetDue(), "updated": req.GetUpdated(), "created": req.GetCreated(),
		"watcher": req.GetWatcher(), "unit": req.GetUnit(), "group_by": req.GetQuery().GetGroupBy(), "totals": strings.Join(req.GetQuery().GetTotals(), ","),
	} {
		if value != "" {
			p[name] = value
		}
	}
	if req.GetOpenOnly() {
		p["open_only"] = "true"
	}
	if req.GetRemoved() {
		p["removed"] = "true"
	}
	if req.GetLimit() != 0 {
		p["limit"] = strconv.Itoa(int(req.GetLimit()))
	}
	if q := req.GetQuery(); q != nil && q.Group != nil {
		p["group"] = q.GetGroup()
	}
	if n := req.GetQuery().GetGroupLimit(); n != 0 {
		p["group_limit"] = strconv.Itoa(int(n))
	}
	if any := req.GetQuery().GetAny(); len(any) > 0 {
		text, err := alternatives(any)
		if err != nil {
			return nil, err
		}
		p["any"] = text
	}
	if err := adopt(p, "field_filters", "f.", req.GetFieldFilters()); err != nil {
		return nil, err
	}
	return p, adopt(p, "query.where", "", req.GetQuery().GetWhere())
}

// adopt adds the conditions of an open object to the parameters.
func adopt(p query.Params, argument, prefix string, object *structpb.Struct) error {
	for key, value := range object.GetFields() {
		key = prefix + strings.TrimPrefix(key, prefix)
		if _, twice := p[key]; twice {
			return fault.New(fault.Invalid, "%s is given as an argument and in %s too: give it once", key, argument).WithField(argument)
		}
		text, err := textOf(argument+"."+key, value)
		if err != nil {
			return err
		}
		p[key] = text
	}
	return nil
}

// textOf writes the value of a condition as text: numbers and truths may be given as they are.
func textOf(argument string, value *structpb.Value) (string, error) {
	switch v := value.GetKind().(type) {
	case *structpb.Value_StringValue:
		return v.StringValue, nil
	case *structpb.Value_BoolValue:
		return strconv.FormatBool(v.BoolValue), nil
	case *structpb.Value_NumberValue:
		return strconv.FormatFloat(v.NumberValue, 'f', -1, 64), nil
	default:
		return "", fault.New(fault.Invalid, "%s must be a text such as lt:today or a,b, not a list, an object or null", argument).WithField(argument)
	}
}

// alternatives writes any as the grammar reads it.
func alternatives(sets []*structpb.Struct) (string, error) {
	all := make([]map[string]string, 0, len(sets))
	for _, set := range sets {
		texts := query.Params{}
		if err := adopt(texts, "query.any", "", set); err != nil {
			return "", err
		}
		all = append(all, texts)
	}
	raw, err := json.Marshal(all)
	return string(raw), err
}

// saved answers the parameters of a view as the grammar reads them. any may be the list itself.
func saved(params *structpb.Struct) (query.Params, error) {
	p := query.Params{}
	for key, value := range params.GetFields() {
		if list := value.GetListValue(); key == "any" && list != nil {
			sets := make([]*structpb.Struct, 0, len(list.GetValues()))
			for _, member := range list.GetValues() {
				sets = append(sets, member.GetStructValue())
			}
			text, err := alternatives(sets)
			if err != nil {
				return nil, err
			}
			p[key] = text
			continue
		}
		text, err := textOf("params."+key, value)
		if err != nil {
			return nil, err
		}
		p[key] = text
	}
	return p, nil
}
