package delivery_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/bullpenhq/bullpen/libs/fault"
	"github.com/bullpenhq/bullpen/services/turn/internal/delivery"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	yes := true
	tools := []delivery.Tool{
		{Name: "reply", Source: "builtin", Delivers: delivery.Asked},
		{Name: "comment_on_work_item", Source: "builtin", Delivers: "work"},
		{Name: "get_work_item", Source: "builtin"},
		{Name: "chat_post", Source: "mcp:chat", Surfaces: []string{"slack"}},
		{Name: "mail_send", Source: "mcp:mail"},
		{Name: "mail_read", Source: "mcp:mail", ReadOnly: &yes},
	}
	did := func(names ...string) (calls []delivery.Call) {
		for _, name := range names {
			calls = append(calls, delivery.Call{Tool: name, Succeeded: true})
		}
		return calls
	}
	owed := func(surface string) delivery.Obligation {
		return delivery.Obligation{Kind: delivery.ObligationTool, Surface: surface}
	}
	for name, c := range map[string]struct {
		owed  delivery.Obligation
		word  delivery.Submission
		calls []delivery.Call
		tools []delivery.Tool
		says  []string
	}{
		"a reply reaches where it was asked":              {owed("slack"), delivery.Submission{Outcome: "delivered"}, did("reply"), tools, nil},
		"a server's tool reaches its declared surface":    {owed("slack"), delivery.Submission{Outcome: "delivered"}, did("chat_post"), tools, nil},
		"a server's name is its surface":                  {owed("mail"), delivery.Submission{Outcome: "delivered"}, did("mail_send"), tools, nil},
		"a read delivers nothing":                         {owed("mail"), delivery.Submission{Outcome: "delivered"}, did("mail_read", "get_work_item"), tools, []string{"`mail`, where the answer is owed", "Nothing that this turn has done can be cited", "`mail_send`"}},
		"a failed call delivers nothing":                  {owed("slack"), delivery.Submission{Outcome: "delivered"}, []delivery.Call{{Tool: "reply"}}, tools, []string{"Answer first, with `reply`, `chat_post`"}},
		"elsewhere is not there":                          {owed("slack"), delivery.Submission{Outcome: "delivered"}, did("comment_on_work_item"), tools, []string{"went elsewhere: `comment_on_work_item`"}},
		"an item is answered on the item":                 {owed("work"), delivery.Submission{Outcome: "delivered"}, did("comment_on_work_item"), tools, nil},
		"a reply elsewhere is no answer on an item":       {owed("work"), delivery.Submission{Outcome: "delivered"}, did("reply"), tools, []string{"`work`, where the answer is owed", "Answer first, with `comment_on_work_item`.", "went elsewhere: `reply`"}},
		"no surface named, any will do":                   {owed(""), delivery.Submission{Outcome: "delivered"}, did("comment_on_work_item"), tools, nil},
		"a seat without a tool there may answer anywhere": {owed("jira"), delivery.Submission{Outcome: "delivered"}, did("comment_on_work_item"), tools[1:], nil},
		"a seat that reaches nobody is told so":           {owed("slack"), delivery.Submission{Outcome: "delivered"}, nil, tools[2:3], []string{"submit `blocked`"}},
		"what is cited must have happened":                {owed("slack"), delivery.Submission{Outcome: "delivered", Deliveries: []string{"chat_post"}}, did("reply"), tools, []string{"`chat_post` has not delivered", "can be cited: `reply`"}},
		"nobody waits, nothing is owed":                   {delivery.Obligation{Kind: "none"}, delivery.Submission{Outcome: "no_action"}, nil, tools, nil},
		"an asker is not ignored":                         {owed("slack"), delivery.Submission{Outcome: "no_action"}, nil, tools, []string{"Somebody waits", "`reply`"}},
		"a colleague is not ignored":                      {delivery.Obligation{Kind: "engine"}, delivery.Submission{Outcome: "no_action"}, nil, tools, []string{"Somebody waits"}},
		"a colleague is answered by the summary":          {delivery.Obligation{Kind: "engine"}, delivery.Submission{Outcome: "delivered"}, nil, tools, nil},
		"blocked needs no delivery":                       {owed("slack"), delivery.Submission{Outcome: "blocked"}, nil, tools, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := delivery.Check(c.owed, c.word, c.calls, c.tools)
			if len(c.says) == 0 {
				require.NoError(t, err)
				return
			}
			require.Equal(t, fault.Invalid, fault.ClassOf(err))
			for _, words := range c.says {
				require.ErrorContains(t, err, words)
			}
		})
	}
}
