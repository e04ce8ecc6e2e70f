package crossplane

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/harness"
)

// begun waits until the turn of item n of a Transaction has come, or the Transaction has ended.
func (w *world) begun(name string, n int) {
	w.t.Helper()
	w.item(name, n, func(item api.Item) bool {
		return item.State != "" && item.State != api.ItemPending && item.State != api.ItemPrepared
	})
}

// landed waits until item n of a Transaction is in effect, or the Transaction has ended.
func (w *world) landed(name string, n int) {
	w.t.Helper()
	w.begun(name, n)
	w.item(name, n, func(item api.Item) bool { return item.State != api.ItemCommitting || item.WaitStartTime != nil })
}

// item waits until item n of a Transaction is as it is to be, or the Transaction has ended.
func (w *world) item(name string, n int, so func(api.Item) bool) {
	w.t.Helper()
	require.Eventually(w.t, func() bool {
		txn := w.Transaction(name)
		return txn.Status.Phase.Terminal() || n < len(txn.Status.Items) && so(txn.Status.Items[n])
	}, crossplane.Wait, 20*time.Millisecond, "item %d of %s", n, name)
}

// killed creates a Transaction that was printed, and kills a process when the turn of item n has
// come.
func (w *world) killed(planned string, n int, kill func()) *api.Transaction {
	w.t.Helper()
	name := w.creates(planned)
	w.begun(name, n)
	kill()
	return w.Ended(name)
}

func (w *world) planned(plan string, args ...any) string {
	w.t.Helper()
	return w.types("kubectl janus package plan "+plan+" --service-account installer --crossplane-version v2.1.3 --package-timeout 60s -o yaml 2>/dev/null", args...)
}

// Whenever Crossplane dies while a Transaction changes packages, the Transaction goes on once it is
// back, to the end that it would have had.
func TestCrossplaneIsKilledAtEachItem(t *testing.T) {
	w := newWorld(t)
	w.killedAtEachItem(w.crossplane.Restart)
}

// So it is when janusd dies.
func TestJanusdIsKilledAtEachItem(t *testing.T) {
	w := newWorldWithoutJanus(t)
	w.OwnRights()
	binary := harness.BuildJanusd(t)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, w.JanusdKubeconfig(t.Context(), kubeconfig))
	start := func() *harness.Program {
		return harness.RunProgram(t, exec.Command(binary, "--kubeconfig="+kubeconfig, "--namespace="+w.Namespace, "--watch-namespaces="+w.Namespace,
			"--leader-elect=false", "--metrics-bind-address=0", "--health-probe-bind-address=0"))
	}
	running := start()
	kill := func() { running.Signal(syscall.SIGKILL); <-running.Ended() }
	t.Cleanup(func() { kill() })
	w.killedAtEachItem(func() {
		kill()
		running = start()
	})
}

// killedAtEachItem installs, upgrades and replaces packages, and kills a process at each item of
// each of these Transactions.
func (w *world) killedAtEachItem(kill func()) {
	w.t.Helper()
	w.push("family", "v1.0.0", "Config", size)
	w.push("bucket", "v1.0.0", "Bucket", size, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.push("bucket", "v1.1.0", "Bucket", sizeAndColor, crossplane.Needs(w.source("family"), ">=v1.0.0"))
	w.push("store", "v1.0.0", "Bucket", sizeAndColor, crossplane.Needs(w.source("family"), ">=v1.0.0"))

	kills := 0
	for n := 0; ; n++ {
		planned := w.planned("install %s:v1.0.0", w.source("bucket"))
		made := w.killed(planned, n, kill)
		require.Equal(w.t, api.PhaseCommitted, made.Status.Phase, describe(made))
		assert.True(w.t, w.healthy("acme-bucket") && w.healthy("acme-family"), "killed at item %d of the installation", n)
		kills++
		if n == len(made.Status.Items)-1 {
			break
		}
		w.committed("delete acme-bucket acme-family")
	}
	w.Served("acme.io/v1 Bucket")
	w.Apply("apiVersion: acme.io/v1\nkind: Bucket\nmetadata: {name: mine}\nspec: {size: 3}\n")
	before := w.Object("acme.io/v1 Bucket/mine")
	same := func(at string, n int) {
		w.t.Helper()
		after := w.Object("acme.io/v1 Bucket/mine")
		require.NotNil(w.t, after, "killed at item %d of the %s", n, at)
		assert.Equal(w.t, before.GetUID(), after.GetUID())
		assert.Equal(w.t, before.Object["spec"], after.Object["spec"])
	}

	for n := 0; ; n++ {
		made := w.killed(w.planned("install %s:v1.1.0", w.source("bucket")), n, kill)
		require.Equal(w.t, api.PhaseCommitted, made.Status.Phase, describe(made))
		assert.True(w.t, w.healthy("acme-bucket"), "killed at item %d of the upgrade", n)
		same("upgrade", n)
		kills++
		w.types("kubectl janus undo %s --wait --timeout 2m", made.Name)
		assert.Equal(w.t, w.source("bucket")+":v1.0.0", w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "spec", "package"))
		same("upgrade", n)
		if n == len(made.Status.Items)-1 {
			break
		}
	}

	for n := 0; ; n++ {
		made := w.killed(w.planned("replace acme-bucket %s:v1.0.0", w.source("store")), n, kill)
		require.Equal(w.t, api.PhaseCommitted, made.Status.Phase, describe(made))
		assert.True(w.t, w.healthy("acme-store"), "killed at item %d of the replacement", n)
		assert.True(w.t, w.controls("acme-store", "buckets.acme.io"), "killed at item %d of the replacement", n)
		same("replacement", n)
		kills++
		w.types("kubectl janus undo %s --wait --timeout 2m", made.Name)
		w.until("the old provider works again", func() bool { return w.healthy("acme-bucket") && w.controls("acme-bucket", "buckets.acme.io") })
		same("undo of the replacement", n)
		if n == len(made.Status.Items)-1 {
			break
		}
	}
	w.types("kubectl delete bucket.acme.io mine")
	w.t.Logf("killed %d times", kills)
}

// A rollback, too, goes on once Crossplane is back.
func TestCrossplaneIsKilledDuringARollback(t *testing.T) {
	w := newWorld(t)
	w.installed()
	before := w.Object("acme.io/v1 Bucket/mine")
	for n := range 3 {
		tag := fmt.Sprintf("v1.1.%d", n)
		w.push("bucket", tag, "Bucket", sizeAndColor)
		planned := w.planned("install %s:%s", w.source("bucket"), tag)
		w.push("bucket", tag, "Bucket", `{type: object, properties: {size: {type: string}}}`)
		name := w.creates(planned)
		require.Eventually(t, func() bool {
			phase := w.Transaction(name).Status.Phase
			return phase == api.PhaseRollingBack || phase.Terminal()
		}, crossplane.Wait, 20*time.Millisecond)
		// Earlier or later in the wait for the old version.
		time.Sleep(time.Duration(n) * 500 * time.Millisecond)
		w.crossplane.Restart()
		made := w.Ended(name)
		require.Equal(t, api.PhaseRolledBack, made.Status.Phase, describe(made))
		assert.Equal(t, w.source("bucket")+":v1.0.0", w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "spec", "package"))
		assert.True(t, w.healthy("acme-bucket"), "the rollback has ended before the old version works")
		after := w.Object("acme.io/v1 Bucket/mine")
		require.NotNil(t, after)
		assert.Equal(t, before.GetUID(), after.GetUID())
	}
	w.types("kubectl delete bucket.acme.io mine")
}

// A package that someone else edits meanwhile is not what was planned: nothing of what was done
// stays, and the edit does.
func TestAnEditMeanwhileStays(t *testing.T) {
	w := newWorld(t)
	w.installed()
	w.push("bucket", "v1.1.0", "Bucket", sizeAndColor)
	w.push("bucket", "v1.2.0", "Bucket", sizeAndColor)
	name := w.creates(w.planned("install %s:v1.1.0", w.source("bucket")))
	w.begun(name, 2)
	require.Eventually(t, func() bool {
		return w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "spec", "package") == w.source("bucket")+":v1.1.0"
	}, crossplane.Wait, 10*time.Millisecond)
	w.Merge("someone", "pkg.crossplane.io/v1 Provider/acme-bucket", `{"spec": {"package": "`+w.source("bucket")+`:v1.2.0"}}`)
	made := w.Ended(name)
	require.Equal(t, api.PhaseFailed, made.Status.Phase, describe(made))
	assert.Contains(t, describe(made), "another client has changed spec.package to "+w.source("bucket")+":v1.2.0")
	assert.Contains(t, describe(made), "FieldConflict")
	assert.Equal(t, w.source("bucket")+":v1.2.0", w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "spec", "package"), describe(made))
	w.until("it works", func() bool { return w.healthy("acme-bucket") })
	assert.NotNil(t, w.Object("acme.io/v1 Bucket/mine"))
	w.types("kubectl delete bucket.acme.io mine")
}

// What another client writes beside, to whichever object once it is changed, stays, and holds nothing up.
// Right before a change it is Drifted.
func TestAnotherClientWritesEachObject(t *testing.T) {
	w := newWorld(t)
	w.installed()
	w.push("bucket", "v1.1.0", "Bucket", sizeAndColor)
	for n, last := 0, 1; n <= last; n++ {
		name := w.creates(w.planned("install %s:v1.1.0", w.source("bucket")))
		w.landed(name, n)
		txn := w.Transaction(name)
		last = len(txn.Status.Items) - 1
		target, label := txn.Status.Items[n].Target, fmt.Sprintf("at-%d", n)
		ref := target.APIVersion + " " + target.Kind + "/" + target.Name
		if target.Namespace == "" {
			w.Merge("someone", ref, `{"metadata": {"labels": {"someone": "`+label+`"}}}`)
		}
		made := w.Ended(name)
		require.Equal(t, api.PhaseCommitted, made.Status.Phase, describe(made))
		w.types("kubectl janus undo %s --wait --timeout 2m", name)
		assert.Equal(t, w.source("bucket")+":v1.0.0", w.Value("pkg.crossplane.io/v1 Provider/acme-bucket", "spec", "package"))
		assert.True(t, w.healthy("acme-bucket"))
		if target.Namespace == "" && target.Kind != "ProviderRevision" {
			assert.Equal(t, label, w.Value(ref, "metadata", "labels", "someone"), ref)
		}
	}
	w.types("kubectl delete bucket.acme.io mine")
}
