package main

import (
	"strings"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// waited says of an item that is in effect and not done, or restored and not ready, for how long it
// has been waited for, how long it may take, and what it lacks: Waiting 12s of 5m: 1/3 Pods ready.
// It is empty of any other.
func waited(t *api.Transaction, i int, now time.Time) string {
	item := &t.Status.Items[i]
	if !plan.Unready(item) && !plan.Restoring(item) {
		return ""
	}
	text := "Waiting"
	if start := *plan.TimesOf(item).Start; start != nil {
		text += " " + seconds(now.Sub(start.Time))
		if timeout := plan.Duration(plan.ReadyTimeout(t, i), 0); timeout > 0 {
			text += " of " + seconds(timeout)
		}
	}
	if hold := *plan.TimesOf(item).Hold; hold != nil {
		return text + ": ready, and must stay so for " + seconds(plan.HoldFor(t, i))
	}
	return text + after(": ", lackOf(t, item))
}

// lackOf is what the condition of a Transaction says that the target of an item lacks. It has one
// part for each of those that are waited for.
func lackOf(t *api.Transaction, item *api.Item) string {
	_, reason, message := reasonOf(t)
	if reason != plan.NotReady {
		return ""
	}
	_, lack, found := strings.Cut(message, item.Target.String()+": ")
	if !found {
		return ""
	}
	for _, other := range t.Status.Items {
		// The next part begins with another target: what is lacking may have semicolons too.
		lack, _, _ = strings.Cut(lack, "; "+other.Target.String()+": ")
	}
	return lack
}

// seconds writes a duration as people do: 12s, 5m, 1h30m.
func seconds(d time.Duration) string {
	text := max(d, 0).Truncate(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// stateText is the state of an item as it is shown: what is waited for is not done, though it is in effect.
func stateText(t *api.Transaction, i int, now time.Time) string {
	if text := waited(t, i, now); text != "" {
		return text
	}
	return string(t.Status.Items[i].State)
}
