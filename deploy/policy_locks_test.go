package deploy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
)

// held waits for something that never comes, so that its lock stays held.
const held = `{changes: [
  {target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Patch, content: {data: {version: "2"}},
   readyWhen: {expression: "object.data.?open.orValue('') == 'yes'"}},
  {target: {apiVersion: v1, kind: ConfigMap, name: made}, type: Create, content: {data: {version: "2"}}}]}`

// lockOf waits until a Transaction has written its first change, and names its lock.
func (s *scene) lockOf(name string) string {
	s.t.Helper()
	txn := s.Await(name, "holding its locks", func(t *api.Transaction) bool { return t.Status.Progress == "1/2" })
	lease := txn.Status.Items[0].LockLease
	require.NotEmpty(s.t, lease)
	return lease[len(s.Namespace)+1:]
}

// TestOnlyJanusdWritesHeldLocks is about a lock that a running Transaction holds.
func TestOnlyJanusdWritesHeldLocks(t *testing.T) {
	s := newScene(t)
	s.run()
	s.Apply(before)
	s.Submit("release", held)
	name := s.lockOf("release")
	says := "Lease " + s.Namespace + "/" + name + ": it is a lock in the name of Transaction " + s.Namespace + "/release/"
	for _, client := range []dynamic.Interface{s.admin, s.in.dynamic} {
		locks := client.Resource(leases).Namespace(s.Namespace)
		for _, patch := range []string{
			`{"spec":{"holderIdentity":"somebody-else"}}`, `{"spec":{"holderIdentity":null}}`,
			`{"spec":{"leaseDurationSeconds":1}}`, `{"metadata":{"labels":null}}`,
		} {
			_, err := locks.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
			s.refused(err, "locks", "may not update "+says, "wait for that Transaction, cancel it or delete it", asJanusd)
		}
		s.refused(locks.Delete(t.Context(), name, metav1.DeleteOptions{}), "locks", "may not delete "+says)
	}

	// The way out of the runbook: anyone who may act as janusd.
	require.NoError(t, s.in.as(t, janusd.User).Resource(leases).Namespace(s.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	s.Merge("opener", "ConfigMap/config", `{"data":{"open":"yes"}}`)
	txn := s.Ended("release")
	require.Equal(t, api.PhaseCommitted, txn.Status.Phase, harness.Describe(txn))
	s.NothingLeft("release")
}

// TestLocksAreOpenToOthers is about Leases that no Transaction holds, whatever they look like.
func TestLocksAreOpenToOthers(t *testing.T) {
	s := newScene(t)
	s.run()
	s.Apply(before)
	locks := s.admin.Resource(leases).Namespace(s.Namespace)
	for title, holder := range map[string]string{"free": "", "backup": "nightly-backup"} {
		labelled := lock("janus-lock-"+title, holder)
		require.NoError(t, s.create(leases, labelled, metav1.CreateOptions{}))
		_, err := locks.Patch(t.Context(), labelled.GetName(), types.MergePatchType, []byte(`{"spec":{"holderIdentity":"another-tool"}}`), metav1.PatchOptions{})
		require.NoError(t, err, "%s", title)
		// Nobody takes a lock in the name of a Transaction, which only janusd could give back.
		_, err = locks.Patch(t.Context(), labelled.GetName(), types.MergePatchType, []byte(`{"spec":{"holderIdentity":"shop/release/4711"}}`), metav1.PatchOptions{})
		s.refused(err, "locks", "in the name of Transaction shop/release/4711")
		require.NoError(t, locks.Delete(t.Context(), labelled.GetName(), metav1.DeleteOptions{}))
	}
	s.refused(s.create(leases, lock("janus-lock-forged", "shop/release/4711"), metav1.CreateOptions{}), "locks", "may not create Lease")
	s.refused(s.create(leases, lock("janus-lock-forged", "janus.io/shared"), metav1.CreateOptions{}), "locks", "it is a lock that Transactions share")
	s.takenBefore()
}

// TestALockIsKnownByItsName is about Leases that have the name of a lock and none of its labels.
// What Janus holds in one was free for all who may write Leases.
func TestALockIsKnownByItsName(t *testing.T) {
	s := newScene(t)
	janus := s.in.as(t, janusd.User).Resource(leases).Namespace(s.Namespace)
	for title, holder := range map[string]string{"of-one": s.Namespace + "/release/4711", "shared": "janus.io/shared"} {
		bare := lock("janus-lock-"+title, holder)
		bare.SetLabels(nil)
		s.refused(s.create(leases, bare.DeepCopy(), metav1.CreateOptions{}), "locks", "may not create Lease "+s.Namespace+"/janus-lock-"+title)
		generated := bare.DeepCopy()
		generated.SetName("")
		generated.SetGenerateName("janus-lock-" + title + "-")
		s.refused(s.create(leases, generated, metav1.CreateOptions{}), "locks", "may not create Lease")

		_, err := janus.Create(t.Context(), bare, metav1.CreateOptions{})
		require.NoError(t, err)
		for _, client := range []dynamic.Interface{s.admin, s.in.dynamic} {
			locks := client.Resource(leases).Namespace(s.Namespace)
			for _, patch := range []string{
				`{"spec":{"holderIdentity":"somebody-else"}}`, `{"spec":{"holderIdentity":null}}`, `{"spec":{"leaseDurationSeconds":1}}`,
				`{"metadata":{"labels":{"a":"b"}}}`, `{"metadata":{"finalizers":["example.com/stay"]}}`,
			} {
				_, err := locks.Patch(t.Context(), bare.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				s.refused(err, "locks", "may not update Lease "+s.Namespace+"/"+bare.GetName())
			}
			s.refused(locks.Delete(t.Context(), bare.GetName(), metav1.DeleteOptions{}), "locks", "may not delete Lease "+s.Namespace+"/"+bare.GetName())
			s.refused(locks.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}), "locks", "may not delete Lease")
		}
		require.NoError(t, janus.Delete(t.Context(), bare.GetName(), metav1.DeleteOptions{}))
	}
	// A Lease of another name and without the labels is no lock, whatever its holder is called.
	other := lock("another", "shop/release/4711")
	other.SetLabels(nil)
	require.NoError(t, s.create(leases, other, metav1.CreateOptions{}))
	require.NoError(t, s.admin.Resource(leases).Namespace(s.Namespace).Delete(t.Context(), "another", metav1.DeleteOptions{}))
}

// TestOnlyJanusdWritesTheLeasesOfItsReplicas is about the Leases by which janusd stands still if
// another client writes them: in its namespace alone, for elsewhere they mean nothing.
func TestOnlyJanusdWritesTheLeasesOfItsReplicas(t *testing.T) {
	s := newScene(t)
	const system = "janus-system"
	bind(t, s.in, system, "cluster-admin", "admin-of-"+s.Namespace)
	janus := s.in.as(t, janusd.User).Resource(leases).Namespace(system)
	own := func(name string, labels map[string]string) *unstructured.Unstructured {
		lease := lock(name, "another")
		lease.SetLabels(labels)
		return lease
	}
	plain := own("plain-"+s.Namespace, nil)
	there := s.admin.Resource(leases).Namespace(system)
	require.Eventually(t, func() bool {
		_, err := there.Create(t.Context(), plain.DeepCopy(), metav1.CreateOptions{})
		return err == nil
	}, settle, poll)
	replica := map[string]string{"app.kubernetes.io/name": "janusd", "app.kubernetes.io/component": "replica", "janus.io/shards": "4"}
	for _, lease := range []*unstructured.Unstructured{
		own("janusd-leader-"+s.Namespace, nil), own("janusd-shard-250", nil), own("janusd-"+s.Namespace+"-shard-0", nil),
		own("janus-package-transactions", nil), own("janusd-replica-"+s.Namespace, replica), own("any-"+s.Namespace, replica),
	} {
		name := lease.GetName()
		says := "Lease " + system + "/" + name + ": by the Leases of this name or label the replicas of janusd share their work"
		for _, client := range []dynamic.Interface{s.admin, s.in.dynamic} {
			_, err := client.Resource(leases).Namespace(system).Create(t.Context(), lease.DeepCopy(), metav1.CreateOptions{})
			s.refused(err, "locks", "may not create "+says, asJanusd)
		}
		made, err := janus.Create(t.Context(), lease.DeepCopy(), metav1.CreateOptions{})
		require.NoError(t, err)
		for _, client := range []dynamic.Interface{s.admin, s.in.dynamic} {
			there := client.Resource(leases).Namespace(system)
			for _, patch := range []string{
				`{"spec":{"holderIdentity":"somebody-else"}}`, `{"spec":{"holderIdentity":null}}`, `{"metadata":{"labels":null},"spec":{"leaseDurationSeconds":1}}`,
			} {
				_, err := there.Patch(t.Context(), name, types.MergePatchType, []byte(patch), metav1.PatchOptions{})
				s.refused(err, "locks", "may not update "+says, asJanusd)
			}
			s.refused(there.Delete(t.Context(), name, metav1.DeleteOptions{}), "locks", "may not delete "+says)
		}
		require.NoError(t, unstructured.SetNestedField(made.Object, "its-successor", "spec", "holderIdentity"))
		_, err = janus.Update(t.Context(), made, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, janus.Delete(t.Context(), name, metav1.DeleteOptions{}))
		// Elsewhere it is no Lease of janusd.
		require.NoError(t, s.create(leases, lease.DeepCopy(), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}))
	}
	// Nobody turns another Lease into one of a replica.
	_, err := there.Patch(t.Context(), plain.GetName(), types.MergePatchType, []byte(`{"metadata":{"labels":{"app.kubernetes.io/name":"janusd"}}}`), metav1.PatchOptions{})
	s.refused(err, "locks", "may not update Lease")
	generated := own("", nil)
	generated.SetGenerateName("janusd-shard-")
	_, err = there.Create(t.Context(), generated, metav1.CreateOptions{})
	s.refused(err, "locks", "may not create Lease")
	require.NoError(t, there.Delete(t.Context(), plain.GetName(), metav1.DeleteOptions{}))
}

// TestALockInTheNameOfASuspendedTransactionIsNotMadeForIt is the way in which a lock was robbed:
// a user who may write Leases makes the Lease of the lock before the Transaction does, in its name,
// and may delete it later.
func TestALockInTheNameOfASuspendedTransactionIsNotMadeForIt(t *testing.T) {
	s := newScene(t)
	s.run()
	s.Apply(before)
	s.Submit("first", held)
	name := s.lockOf("first")
	s.Merge("opener", "ConfigMap/config", `{"data":{"open":"yes"}}`)
	require.Equal(t, api.PhaseCommitted, s.Ended("first").Status.Phase)

	s.Submit("victim", `{suspend: true, changes: [
	  {target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Patch, content: {data: {version: "3", open: "no"}}}]}`)
	victim := s.Await("victim", "suspended", func(t *api.Transaction) bool { return t.Status.SuspendTime != nil })
	forged := lock(name, api.HolderOf(victim))
	forged.SetLabels(nil)
	s.refused(s.create(leases, forged.DeepCopy(), metav1.CreateOptions{}), "locks", "in the name of Transaction "+api.HolderOf(victim))

	// Where the policy was not in force when it was made, it is in the way like the lock of
	// another client, until it is removed.
	_, err := s.in.as(t, janusd.User).Resource(leases).Namespace(s.Namespace).Create(t.Context(), forged, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = s.in.dynamic.Resource(api.Resource).Namespace(s.Namespace).
		Patch(t.Context(), "victim", types.MergePatchType, []byte(`{"spec":{"suspend":false}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	s.Await("victim", "waiting for the lock", func(t *api.Transaction) bool {
		ready := meta.FindStatusCondition(t.Status.Conditions, api.ConditionReady)
		return ready != nil && ready.Reason == "LockHeld" && strings.Contains(ready.Message, "names this Transaction, but another client has written it")
	})
	require.NoError(t, s.in.as(t, janusd.User).Resource(leases).Namespace(s.Namespace).Delete(t.Context(), name, metav1.DeleteOptions{}))
	require.Equal(t, api.PhaseCommitted, s.Ended("victim").Status.Phase)
	s.NothingLeft("victim")
}

// takenBefore has a person take the very lock that a Transaction wants, which then waits,
// and gets it when it is given back.
func (s *scene) takenBefore() {
	s.t.Helper()
	// The name of the lock follows from the target, so one Transaction tells it for another.
	s.Submit("first", held)
	name := s.lockOf("first")
	s.Merge("opener", "ConfigMap/config", `{"data":{"open":"yes"}}`)
	require.Equal(s.t, api.PhaseCommitted, s.Ended("first").Status.Phase)

	taken := lock(name, "nightly-backup")
	taken.SetLabels(nil)
	require.NoError(s.t, s.create(leases, taken, metav1.CreateOptions{}))
	s.Submit("second", `{changes: [{target: {apiVersion: v1, kind: ConfigMap, name: config}, type: Patch, content: {data: {version: "3"}}}]}`)
	s.Await("second", "waiting for the lock", func(t *api.Transaction) bool {
		for _, c := range t.Status.Conditions {
			if c.Type == api.ConditionReady && c.Reason == "LockHeld" {
				return true
			}
		}
		return false
	})
	locks := s.admin.Resource(leases).Namespace(s.Namespace)
	_, err := locks.Patch(s.t.Context(), name, types.MergePatchType, []byte(`{"spec":{"holderIdentity":null}}`), metav1.PatchOptions{})
	require.NoError(s.t, err, "a person gives back what they hold")
	require.Equal(s.t, api.PhaseCommitted, s.Ended("second").Status.Phase)
}
