package enforced_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
)

const objects = `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {version: "1"}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: b}, data: {version: "1"}}
`

// A story is what happens to a Transaction that no fault meets.
type story struct {
	spec  string
	phase api.Phase
	// stopped is whether it is stopped when its last change is made, and is to be rolled back
	// after all when it has ended: that is a recovery.
	stopped bool
}

var stories = map[string]story{
	"commits": {phase: api.PhaseCommitted, spec: `{changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Delete},
  {target: {apiVersion: v1, kind: ConfigMap, name: c}, type: Create, content: {data: {version: "2"}}}]}`},
	"fails": {phase: api.PhaseRolledBack, spec: `{changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "2"}},
   readyWhen: {expression: "has(object.data.never)", timeout: 1s}}]}`},
	"is rolled back after it was stopped": {phase: api.PhaseRolledBack, stopped: true, spec: `{changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {version: "2"}}},
  {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Patch, content: {data: {version: "2"}},
   readyWhen: {expression: "has(object.data.never)"}}]}`},
}

// TestEveryFaultAtEveryRequestForATable lets each fault happen to each request for a table,
// with another process taking over where one crashes. The Transaction ends as it does
// without the fault, and no entry outlives it.
func TestEveryFaultAtEveryRequestForATable(t *testing.T) {
	for name, s := range stories {
		t.Run(name, func(t *testing.T) {
			line := faultinject.NewLine()
			newWorld(t).tell(s, line)
			var plans []faultinject.Injection
			var names []string
			for _, c := range line.Calls() {
				if c.Resource != api.LockTableResource.Resource {
					continue
				}
				for _, fault := range c.Faults() {
					plans = append(plans, faultinject.Injection{At: c.At, Fault: fault})
					names = append(names, strings.ReplaceAll(fmt.Sprintf("%s %s", c.At, fault), "/", "-"))
				}
			}
			require.GreaterOrEqual(t, len(plans), 30, "a read and a write when it begins, and when it ends")
			harness.Together(t, 6, names, func(t *testing.T, i int) {
				line := faultinject.NewLine(plans[i])
				newWorld(t).tell(s, line)
				require.Empty(t, line.Missed(), "the fault did not happen")
			})
		})
	}
}

// tell has a story happen, and looks at what is there afterwards.
func (w *world) tell(s story, line *faultinject.Line) {
	w.t.Helper()
	w.Apply(objects)
	p := w.processes(line)
	w.Submit("txn", s.spec)
	if s.stopped {
		p.await("waits for its last change", func(t *api.Transaction) bool {
			return len(t.Status.Items) == 2 && t.Status.Items[1].State == api.ItemCommitted
		})
		w.Merge("user", "backup.janus.io/v1alpha1 Transaction/txn", `{"spec":{"cancel":"Stop"}}`)
		p.await("has stopped", func(t *api.Transaction) bool { return t.Status.Phase == api.PhaseFailed })
		require.Empty(w.t, w.locks(), "what has stopped has no locks")
		w.Merge("user", "backup.janus.io/v1alpha1 Transaction/txn", `{"spec":{"cancel":"Rollback"}}`)
	}
	txn := p.await("has ended", func(t *api.Transaction) bool {
		return t.Status.Phase.Terminal() && (!s.stopped || t.Status.Phase != api.PhaseFailed)
	})
	require.Equal(w.t, s.phase, txn.Status.Phase, harness.Describe(txn))
	if s.phase == api.PhaseCommitted {
		assert.Equal(w.t, "2", w.Value("ConfigMap/a", "data", "version"))
		assert.Nil(w.t, w.Object("ConfigMap/b"))
	} else {
		assert.Equal(w.t, "1", w.Value("ConfigMap/a", "data", "version"))
		assert.Equal(w.t, "1", w.Value("ConfigMap/b", "data", "version"))
	}
	line.Settle() // What is late has landed.
	w.noneLeft()
	w.Until("others may write again", func() bool {
		err := w.tryWrite("a")
		return apierrors.IsAlreadyExists(err)
	})
}

// processes are those that run one Transaction, one after the other.
type processes struct {
	*world
	line *faultinject.Line
	now  *faultinject.Process
}

func (w *world) processes(line *faultinject.Line) *processes {
	p := &processes{world: w, line: line}
	p.start()
	return p
}

func (p *processes) start() {
	p.now = p.line.Process()
	p.Start(harness.WithTransport(p.now.Wrap), harness.EnforcingLocks())
}

// await waits for something to be true of the Transaction. A process that crashes has a
// successor.
func (p *processes) await(what string, wanted func(*api.Transaction) bool) *api.Transaction {
	p.t.Helper()
	for {
		crashed := false
		txn := p.Await("txn", what, func(t *api.Transaction) bool {
			select {
			case <-p.now.Crashed():
				crashed = true
				return true
			default:
				return wanted(t)
			}
		})
		if !crashed {
			return txn
		}
		p.start()
	}
}
