package modeldouble

import (
	"regexp"

	"github.com/bullpenhq/bullpen/libs/script"
)

// answer plays the scenario for a request.
func (s *Scenario) answer(r Request) (Answer, error) {
	move, err := s.script.Next(sceneOf(r))
	if err != nil {
		return Answer{}, err
	}
	answer := Answer{Text: move.Say}
	for _, c := range move.Calls {
		answer.Calls = append(answer.Calls, Call{Tool: c.Tool, Args: c.Args})
	}
	return answer, nil
}

// sceneOf reads a conversation: the first user message opens it, each assistant message is a round played, and the seat is
// the handle that the system prompt names in backticks.
func sceneOf(r Request) script.Scene {
	scene := script.Scene{Facts: map[string]string{}, Results: map[string]string{}}
	if found := regexp.MustCompile("handle is `([^`]+)`").FindStringSubmatch(r.System); found != nil {
		scene.Facts["seat"] = found[1]
	}
	tools := map[string]string{}
	opened := false
	for _, m := range r.Messages {
		switch m.Role {
		case "user":
			if !opened {
				scene.Opening, opened = m.Text, true
			}
		case "assistant":
			scene.Round++
			for _, c := range m.Calls {
				tools[c.ID] = c.Tool
			}
		case "tool":
			scene.Results[tools[m.CallID]] = m.Text
		}
	}
	return scene
}
