package oracle_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/oracle"
	"janus.io/janus/test/testcluster"
)

func TestMain(m *testing.M) {
	os.Exit(testcluster.Main(m, testcluster.Options{ControllerManager: true, CRDs: "../../deploy/crd"}))
}

// scene is a run on a real API server.
type scene struct {
	*harness.Env
	t       *testing.T
	watcher *harness.Watcher
	line    *faultinject.Line
}

func newScene(t *testing.T, injections ...faultinject.Injection) *scene {
	e := harness.New(t)
	e.Apply(`
apiVersion: v1
kind: ConfigMap
metadata: {name: a, labels: {app: shop}}
data: {color: red, size: small}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
stringData: {password: correct-horse-battery}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: gone, finalizers: []}
data: {left: over}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 0
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: "web:1", env: [{name: A, value: "1"}]}]}
`)
	s := &scene{Env: e, t: t, watcher: harness.NewWatcher(t, e.Client), line: faultinject.NewLine(injections...)}
	return s
}

// processes runs one process after the other, each until it crashes.
func (s *scene) processes() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	start := func() (*harness.Janus, *faultinject.Process) {
		p := s.line.Process()
		return s.Start(harness.WithTransport(p.Wrap)), p
	}
	j, p := start()
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-p.Crashed():
				j.Stop()
				j, p = start()
			}
		}
	}()
	s.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// the changes of every scene: one of each type, and two of one target.
const changes = `
changes:
- {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {color: blue}}}
- {target: {apiVersion: v1, kind: Secret, name: s}, type: Patch, content: {stringData: {password: battery-staple-horse}}}
- {target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {x: "1"}}}
- {target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Update, content: {data: {color: green}}}
- {target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Patch, content: {spec: {template: {spec: {containers: [{name: web, image: "web:2"}]}}}}}
- {target: {apiVersion: v1, kind: ConfigMap, name: gone}, type: Delete}
`

const refused = `
- {target: {apiVersion: v1, kind: Service, name: svc}, type: Create, content: {spec: {ports: [{port: 80}]}}}
- {target: {apiVersion: v1, kind: ConfigMap, name: refused-b}, type: Create, content: {data: {a: b}}}
`

// evidence collects what there is of a run that has ended.
func (s *scene) evidence(txn *api.Transaction) oracle.Evidence {
	run := oracle.Run{Namespace: s.Namespace, Name: txn.Name, UID: txn.UID, Spec: txn.Spec}
	for _, item := range txn.Status.Items {
		ref := oracle.Ref{Resource: item.Resource, Namespace: item.Target.Namespace, Name: item.Target.Name}
		if group, _, ok := strings.Cut(item.Target.APIVersion, "/"); ok {
			ref.Resource += "." + group
		}
		run.Items = append(run.Items, ref)
	}
	s.line.Settle()
	return oracle.Evidence{
		History: s.watcher.History(s.Namespace), Calls: s.line.Calls(), Runs: []oracle.Run{run},
		Canary: "correct-horse-battery", CallsSinceFault: s.line.Count(),
	}
}

func (s *scene) judged(want api.Phase) {
	txn := s.Ended("txn")
	require.Equal(s.t, want, txn.Status.Phase, harness.Describe(txn))
	e := s.evidence(txn)
	assert.Empty(s.t, oracle.Judge(e))
	begin := time.Now()
	for range 100 {
		oracle.Judge(e)
	}
	s.t.Logf("%d versions, %d calls, %d items: %s", len(e.History), len(e.Calls), len(e.Runs[0].Items), time.Since(begin)/100)
}

func TestACommitIsClean(t *testing.T) {
	s := newScene(t)
	s.processes()
	s.Submit("txn", changes)
	s.judged(api.PhaseCommitted)
}

func TestARollbackIsClean(t *testing.T) {
	s := newScene(t)
	s.Refuse()
	s.processes()
	s.Submit("txn", changes+refused)
	s.judged(api.PhaseRolledBack)
}

func TestACrashIsClean(t *testing.T) {
	for _, key := range []string{"PATCH configmaps/a", "POST configmaps/made", "DELETE configmaps/gone", "PUT transactions/txn/status"} {
		t.Run(key, func(t *testing.T) {
			s := newScene(t, faultinject.Injection{At: faultinject.At{Key: key, Nth: 0}, Fault: faultinject.CrashAfter})
			s.Refuse()
			s.processes()
			s.Submit("txn", changes+refused)
			s.judged(api.PhaseRolledBack)
			assert.Empty(t, s.line.Missed())
		})
	}
}

func TestAForeignWriteIsClean(t *testing.T) {
	var s *scene
	write := func(patch string) func(context.Context) {
		return func(ctx context.Context) {
			_, err := s.Kube.CoreV1().ConfigMaps(s.Namespace).Patch(ctx, "a", types.MergePatchType, []byte(patch), metav1.PatchOptions{FieldManager: "somebody"})
			assert.NoError(t, err)
		}
	}
	for _, c := range []struct {
		patch string
		want  api.Phase
	}{
		{`{"metadata":{"annotations":{"note":"mine"}}}`, api.PhaseRolledBack},
		{`{"data":{"color":"yellow"}}`, api.PhaseFailed},
		{`{"data":{"color":"red"}}`, api.PhaseFailed},
		{`{"data":{"color":null}}`, api.PhaseFailed},
	} {
		t.Run(c.patch, func(t *testing.T) {
			s = newScene(t, faultinject.Injection{At: faultinject.At{Key: "POST services/svc"}, Act: write(c.patch)})
			s.Refuse()
			s.processes()
			s.Submit("txn", changes+refused)
			s.judged(c.want)
		})
	}
}
