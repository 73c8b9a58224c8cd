package model

import (
	"context"
	"fmt"

	"github.com/bullpenhq/bullpen/libs/script"
	"github.com/bullpenhq/bullpen/services/turn/internal/journal"
)

// Scripted is the name that stands wherever a model's would: nobody shall take a script's word for a model's.
const Scripted = "scripted"

// Script answers from a scenario in the language of libs/script, with the fact `seat` and the verb `submit`. It needs no key
// and no network, and the same journal always gets the same answer.
type Script struct{ script *script.Script }

// ParseScript reads a scenario.
func ParseScript(text string) (*Script, error) {
	parsed, err := script.Parse([]byte(text), script.Options{
		Facts: []string{"seat"}, Verbs: map[string]string{"submit": "submit_work"},
	})
	if err != nil {
		return nil, err
	}
	return &Script{script: parsed}, nil
}

// Ask implements [Provider].
func (s *Script) Ask(_ context.Context, _ string, r Request) (Answer, error) {
	scene := script.Scene{
		Opening: r.Opening, Facts: map[string]string{"seat": r.Seat}, Round: len(r.Rounds), Results: map[string]string{},
	}
	for _, round := range r.Rounds {
		for i, result := range round.Results {
			scene.Results[round.Calls[i].Tool] = result.Text
		}
	}
	move, err := s.script.Next(scene)
	if err != nil {
		return Answer{}, &Failure{Kind: Rejected, Message: err.Error()}
	}
	answer := Answer{Model: Scripted, Text: move.Say, Stop: journal.StopEnd, Dialect: Scripted, Scripted: true}
	for i, call := range move.Calls {
		answer.Calls = append(answer.Calls, Call{
			ID: fmt.Sprintf("script_%d_%d", len(r.Rounds)+1, i+1), Tool: call.Tool, Args: call.Args,
		})
		answer.Stop = journal.StopCalls
	}
	return answer, nil
}
