package size

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// mostOfAll is how much memory janusd may take while it runs as many large Transactions as it does
// at once: well below the 512 MiB that deploy/ gives it.
const mostOfAll = 350 // MiB

// How many Transactions janusd runs at once by default, in one namespace and in all.
const (
	ofOneNamespace = 4
	ofAll          = 5
)

// TestFiveLargeDeletionsAtOnceTakeLittleMemory has as many Transactions rolled back as janusd runs
// at once, each of which deletes 12 MB.
func TestFiveLargeDeletionsAtOnceTakeLittleMemory(t *testing.T) {
	s := newSeveral(t, 12, 1_000_000)
	s.together("alone", api.PhaseRolledBack, s.all[:1], s.deletion)
	s.together("together", api.PhaseRolledBack, s.all, s.deletion)
}

// TestFiveLargeUpdatesAtOnceTakeLittleMemory has five Transactions rolled back, and then five committed.
// Each replaces 12 MB, with contents from ConfigMaps.
func TestFiveLargeUpdatesAtOnceTakeLittleMemory(t *testing.T) {
	s := newSeveral(t, 12, 1_000_000)
	for _, one := range s.all {
		one.store()
	}
	s.together("alone", api.PhaseRolledBack, s.all[:1], s.update)
	s.together("together", api.PhaseRolledBack, s.all, s.update)
	s.together("release", api.PhaseCommitted, s.all, s.update)
}

// several are Transactions that change as much each.
type several struct {
	t   *testing.T
	all []part
}

// part is the work of one Transaction: so many objects of a stage from one on.
type part struct {
	*stage
	from, n int
}

// newSeveral fills two namespaces for as many Transactions as janusd runs at once, with so many
// objects of so many bytes for each.
func newSeveral(t *testing.T, each, bytes int) *several {
	t.Helper()
	cluster, err := testcluster.Start(testcluster.Options{ControllerManager: true, CRDs: deployed("crd")})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	s := &several{t: t}
	for _, n := range []int{ofOneNamespace, ofAll - ofOneNamespace} {
		one := &stage{Env: harness.On(t, cluster), t: t, n: n * each, bytes: bytes}
		one.fill()
		for i := range n {
			s.all = append(s.all, part{one, i * each, each})
		}
	}
	return s
}

// store puts what the objects get in version 2 beside them.
func (p part) store() {
	var group errgroup.Group
	group.SetLimit(4)
	for i := p.from; i < p.from+p.n; i++ {
		group.Go(func() error {
			content, err := json.Marshal(map[string]any{"data": map[string]string{"text": p.text(i, 2), "kept": "yes"}})
			if err != nil {
				return err
			}
			_, err = p.Kube.CoreV1().ConfigMaps(p.Namespace).Create(p.t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: "content-of-" + name(i)}, Data: map[string]string{"content": string(content)},
			}, metav1.CreateOptions{FieldManager: harness.Manager})
			return err
		})
	}
	require.NoError(p.t, group.Wait())
}

func (s *several) deletion(i int) map[string]any {
	return map[string]any{"type": "Delete", "target": configMap(name(i))}
}

func (s *several) update(i int) map[string]any {
	return map[string]any{
		"type": "Update", "target": configMap(name(i)),
		"contentFrom": map[string]any{"configMapKeyRef": map[string]any{"name": "content-of-" + name(i), "key": "content"}},
	}
}

func configMap(name string) map[string]any {
	return map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name}
}

// together has Transactions begin with a janusd that has just started, and wants all of them to be under way at
// once, and that janusd to stay within its memory. To be rolled back they get a last change that fails.
func (s *several) together(transaction string, phase api.Phase, parts []part, change func(i int) map[string]any) {
	s.t.Helper()
	for k, p := range parts {
		var changes []map[string]any
		for i := p.from; i < p.from+p.n; i++ {
			changes = append(changes, change(i))
		}
		if phase == api.PhaseRolledBack {
			changes = append(changes, map[string]any{
				"type": "Create", "target": configMap(fmt.Sprintf("%s-%d-fails", transaction, k)), "content": map[string]any{"data": map[string]any{"a": "b"}},
				"readyWhen": map[string]any{"expression": `object.data.a == "never"`, "timeout": "1s"},
			})
		}
		text, err := json.Marshal(map[string]any{"changes": changes})
		require.NoError(s.t, err)
		p.Submit(fmt.Sprintf("%s-%d", transaction, k), string(text))
	}
	began := time.Now()
	program, stop := parts[0].begin()
	var lastStart, firstEnd time.Time
	for k, p := range parts {
		last := p.await(fmt.Sprintf("%s-%d", transaction, k), program)
		require.Equal(s.t, phase, last.Status.Phase, harness.Describe(last))
		if start := last.Status.StartTime.Time; start.After(lastStart) {
			lastStart = start
		}
		if end := last.Status.CompletionTime.Time; firstEnd.IsZero() || end.Before(firstEnd) {
			firstEnd = end
		}
	}
	peak := program.peak()
	s.t.Logf("%s, %d at once: %d MiB, %s", transaction, len(parts), peak>>20, time.Since(began).Round(time.Second))
	assert.True(s.t, lastStart.Before(firstEnd), "the last began at %s, when the first had ended at %s", lastStart, firstEnd)
	assert.LessOrEqual(s.t, peak>>20, int64(mostOfAll), "MiB")
	stop()
	for _, p := range parts {
		if p.from == 0 {
			p.have(map[api.Phase]int{api.PhaseRolledBack: 1, api.PhaseCommitted: 2}[phase])
		}
	}
}

// await waits for the end of a Transaction, for as long as janusd is there.
func (p part) await(transaction string, janusd memory) *api.Transaction {
	p.t.Helper()
	for began := time.Now(); ; time.Sleep(200 * time.Millisecond) {
		require.Less(p.t, time.Since(began), 20*time.Minute, "%s does not end", transaction)
		select {
		case <-janusd.of.Ended():
			require.Fail(p.t, "janusd has ended", strings.TrimSpace(janusd.of.Log()))
		default:
		}
		if last := p.Transaction(transaction); last.Status.Phase.Terminal() {
			return last
		}
	}
}
