package enforced_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/chaos"
	"janus.io/janus/internal/janustest"
)

const objects = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {version: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {version: "1"}}
`

// commits ends Committed, fails ends RolledBack, because its last change is refused.
const (
	commits = `{changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Delete},
  {target: {apiVersion: v1, kind: ConfigMap, name: c}, type: Create, content: {data: {version: "2"}}}]}`
	fails = `{changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "2"}},
   readyWhen: {expression: "has(object.data.never)", timeout: 1s}}]}`
)

// TestEveryFaultAtEveryRequestForATable lets each fault happen to each request for a table,
// with another process taking over where one crashes. The Transaction ends as it does
// without the fault, and no entry outlives it.
func TestEveryFaultAtEveryRequestForATable(t *testing.T) {
	for spec, phase := range map[string]api.Phase{commits: api.PhaseCommitted, fails: api.PhaseRolledBack} {
		t.Run(string(phase), func(t *testing.T) {
			w := newWorld(t)
			line := chaos.NewLine()
			w.runWith(line, spec, phase)
			var plans []chaos.Injection
			var names []string
			for _, c := range line.Calls() {
				if c.Resource != api.LockTableResource.Resource {
					continue
				}
				for _, fault := range c.Faults() {
					plans = append(plans, chaos.Injection{At: c.At, Fault: fault})
					names = append(names, strings.ReplaceAll(fmt.Sprintf("%s %s", c.At, fault), "/", "-"))
				}
			}
			require.GreaterOrEqual(t, len(plans), 40, "requests for the table are known")
			janustest.Together(t, 6, names, func(t *testing.T, i int) {
				line := chaos.NewLine(plans[i])
				newWorld(t).runWith(line, spec, phase)
				require.Empty(t, line.Missed(), "the fault did not happen")
			})
		})
	}
}

// runWith runs a Transaction, in a further process if the first one crashes, and looks at
// what is there afterwards.
func (w *world) runWith(line *chaos.Line, spec string, phase api.Phase) {
	w.t.Helper()
	w.Apply(objects)
	first := line.Process()
	w.Start(janustest.WithTransport(first.Wrap), janustest.EnforcingLocks())
	w.Submit("txn", spec)
	w.Await("txn", "ended or left", func(t *api.Transaction) bool {
		select {
		case <-first.Crashed():
			return true
		default:
			return t.Status.Phase.Terminal()
		}
	})
	select {
	case <-first.Crashed():
		second := line.Process()
		w.Start(janustest.WithTransport(second.Wrap), janustest.EnforcingLocks())
	default:
	}
	txn := w.Ended("txn")
	require.Equal(w.t, phase, txn.Status.Phase, janustest.Describe(txn))
	if phase == api.PhaseCommitted {
		assert.Equal(w.t, "2", w.Value("ConfigMap/a", "data", "version"))
		assert.Nil(w.t, w.Object("ConfigMap/b"))
	} else {
		assert.Equal(w.t, "1", w.Value("ConfigMap/a", "data", "version"))
	}
	line.Settle() // What is late has landed.
	w.noneLeft()
	w.Until("others may write again", func() bool {
		err := w.tryWrite("a")
		return apierrors.IsAlreadyExists(err)
	})
}
