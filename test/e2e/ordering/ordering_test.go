// Package ordering runs Transactions whose changes wait for each other, in a cluster
// with Nodes on which Pods become ready.
package ordering

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/wiring"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

var update = flag.Bool("update", false, "write the golden file of testdata anew")

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{Nodes: 2, Audit: true, CRDs: "../../../deploy/crd", Judge: harness.JudgeRights}))
}

func TestThePageAboutOrderIsAsItIs(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start()
	e.RunPage("order-and-readiness.md")
	e.NothingLeft("release")
	e.NothingLeft("clean-up")
}

// The same eight changes as on the page: who is made when, and who is rolled back when.
func TestADiamondIsRolledBackInReverse(t *testing.T) {
	t.Parallel()
	e := harness.New(t)
	e.Start(harness.Stepwise()) // What is recorded together has no order.
	for _, name := range []string{"before", "rbac"} {
		e.Apply(example(t, name))
	}
	e.Until("the Deployments are available", func() bool {
		return !slices.ContainsFunc([]string{"database", "cache", "frontend"}, func(name string) bool {
			available, _, err := unstructured.NestedInt64(e.Object("apps/v1 Deployment/"+name).Object, "status", "availableReplicas")
			return err != nil || available != 1
		})
	})
	before := map[string]*unstructured.Unstructured{}
	for _, name := range []string{"database", "cache", "frontend"} {
		before[name] = e.Object("apps/v1 Deployment/" + name)
	}
	seen := record(t, e)
	e.Apply(example(t, "transaction"))
	txn := e.Ended("release")
	story := seen(txn)

	golden(t, "testdata/diamond.txt", story.text(txn, e.Namespace))
	position := map[string]int{}
	for n, name := range story.made {
		position[name] = n
	}
	for _, c := range txn.Spec.Changes {
		for _, needed := range c.DependsOn {
			assert.Less(t, position[needed], position[c.Name], "%s depends on %s; made: %v", c.Name, needed, story.made)
		}
	}
	assert.Less(t, position["cache"], position["orders"], "the branches go on side by side; made: %v", story.made)
	for name, was := range before {
		now := e.Object("apps/v1 Deployment/" + name)
		assert.Equal(t, was.Object["spec"], now.Object["spec"], name)
	}
	for _, ref := range []string{"ConfigMap/settings-2", "apps/v1 Deployment/orders", "apps/v1 Deployment/catalog", "ConfigMap/accounts", "ConfigMap/search"} {
		assert.Nil(t, e.Object(ref), ref)
	}
	e.NothingLeft("release")
}

func example(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(harness.Root(), "examples", "order-and-readiness", name+".yaml"))
	require.NoError(t, err)
	return string(text)
}

// story is what became of the items of a Transaction, from each of its versions.
type story struct {
	states           map[string][]string
	made, rolledBack []string
}

// record follows all Transactions of the namespace until it is asked for the story of one
// that has ended.
func record(t *testing.T, e *harness.Env) func(ended *api.Transaction) story {
	t.Helper()
	watch, err := e.Dynamic.Resource(api.Resource).Namespace(e.Namespace).Watch(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return func(ended *api.Transaction) story {
		defer watch.Stop()
		s := story{states: map[string][]string{}}
		for event := range watch.ResultChan() {
			obj, ok := event.Object.(*unstructured.Unstructured)
			require.True(t, ok, "%v", event.Object)
			txn, err := wiring.FromUnstructured(obj)
			require.NoError(t, err)
			s.enter(txn)
			if txn.ResourceVersion == ended.ResourceVersion {
				return s
			}
		}
		t.Fatal("the watch has ended before the Transaction")
		return s
	}
}

func (s *story) enter(txn *api.Transaction) {
	for _, item := range txn.Status.Items {
		states := s.states[item.Name]
		state := string(item.State)
		if item.ReadyTime != nil && item.State == api.ItemCommitted {
			state = "ready"
		}
		if len(states) > 0 && states[len(states)-1] == state {
			continue
		}
		s.states[item.Name] = append(states, state)
		switch item.State {
		case api.ItemCommitting:
			s.made = append(s.made, item.Name)
		case api.ItemRolledBack:
			s.rolledBack = append(s.rolledBack, item.Name)
		}
	}
}

// text is all of it that is the same every time. Which of two branches is ahead is not.
func (s *story) text(txn *api.Transaction, namespace string) []byte {
	var out bytes.Buffer
	for _, c := range txn.Spec.Changes {
		fmt.Fprintf(&out, "%-10s%s\n", c.Name, strings.Join(s.states[c.Name], " > "))
	}
	fmt.Fprintf(&out, "\nrolled back: %s\n", strings.Join(s.rolledBack, ", "))
	_, reason, message := harness.Condition(txn, api.ConditionSucceeded)
	fmt.Fprintf(&out, "%s because of %s: %s: %s\n", txn.Status.Phase, txn.Status.FailedItem, reason, strings.ReplaceAll(message, namespace, "shop"))
	return out.Bytes()
}

func golden(t *testing.T, path string, got []byte) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, got, 0o600))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, string(want), string(got))
}
