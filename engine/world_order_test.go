package engine

import (
	"errors"
	"fmt"
	"strings"

	api "janus.io/janus/api/v1alpha1"
)

// checkOrder reads a transcript and reports the first effect that came before
// what must be durable first: the finalizer, the before-image and the intent.
func checkOrder(lines []string) error {
	states, saved, held := map[string]string{}, map[string]bool{}, false
	for n, line := range lines {
		verb, rest, _ := strings.Cut(line, " ")
		if strings.Contains(line, ": fails, ") && verb != "do" && verb != "undo" {
			continue
		}
		name, _, _ := strings.Cut(strings.TrimSuffix(rest, " (the answer is lost)"), " (")
		name, _, _ = strings.Cut(name, ":")
		var missing error
		switch verb {
		case "add":
			held = true
		case "remove":
			held = false
		case "save":
			for item := range strings.SplitSeq(name, ", ") {
				saved[item] = true
			}
		case "discard":
			clear(saved)
		case "checkpoint":
			states = statesOf(line)
		case "do":
			missing = wanting(held, saved[name], states[name] == string(api.ItemCommitting))
		case "undo":
			missing = wanting(held, saved[name], states[name] == string(api.ItemRollingBack))
		}
		if missing != nil {
			return fmt.Errorf("line %d, %q: %w", n+1, line, missing)
		}
	}
	return nil
}

func wanting(finalizer, image, intent bool) error {
	switch {
	case !finalizer:
		return errors.New("the finalizer is not there")
	case !image:
		return errors.New("no before-image is saved")
	case !intent:
		return errors.New("no intent is on record")
	}
	return nil
}

// statesOf reads "checkpoint 4 Committing: a Committed, b Committing [...]".
func statesOf(line string) map[string]string {
	_, items, _ := strings.Cut(line, ": ")
	items, _, _ = strings.Cut(items, " [")
	items = strings.TrimSuffix(items, " (the answer is lost)")
	states := map[string]string{}
	for entry := range strings.SplitSeq(items, ", ") {
		name, state, _ := strings.Cut(entry, " ")
		state, _, _ = strings.Cut(state, "(")
		states[name] = state
	}
	return states
}
