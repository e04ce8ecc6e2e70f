package deploy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

var tried = []string{metav1.DryRunAll}

// The moves of the two fields that can be changed. JSON null is absent.
var (
	suspensions = []string{"null", "false", "true"}
	cancels     = []string{"null", `"Rollback"`, `"Stop"`}

	// resumes are the moves of spec.suspend after which Janus goes on.
	resumes = map[[2]string]bool{{"true", "null"}: true, {"true", "false"}: true}
	// writes are the moves of spec.cancel after which Janus writes: it rolls back, or goes on.
	writes = map[[2]string]bool{
		{"null", `"Rollback"`}: true, {`"Stop"`, `"Rollback"`}: true, {`"Rollback"`, "null"}: true, {`"Stop"`, "null"}: true,
	}
)

// editors are those who may edit Transactions, by whether they may have ServiceAccount
// deployer act.
func editors(t *testing.T, in installation, namespace string) map[string]bool {
	t.Helper()
	who := map[string]bool{}
	for name, right := range map[string]*grant{"editor": nil, "who-may-use": &use, "who-may-impersonate": &impersonate} {
		user := name + "-of-" + namespace
		who[user] = right != nil
		bind(t, in, namespace, "janus-editor", user)
		awaitCreator(t, in, namespace, user)
		if right == nil {
			continue
		}
		permit(t, in, namespace, user, *right)
		client := in.as(t, user).Resource(api.Resource).Namespace(namespace)
		require.Eventually(t, func() bool {
			_, err := client.Create(t.Context(), transaction("deployer"), metav1.CreateOptions{DryRun: tried})
			return err == nil
		}, settle, poll, "%s may have the ServiceAccount act", user)
	}
	return who
}

// judged compares what became of a request with whether it takes a right that the user has.
func judged(t *testing.T, err error, user, namespace string, takes, has bool, wayOut string) {
	t.Helper()
	if !takes || has {
		assert.NoError(t, err)
		return
	}
	require.ErrorContains(t, err, identityPolicy)
	assert.ErrorContains(t, err, `user "`+user+`" may not let a Transaction act as ServiceAccount `+namespace+
		"/deployer: that takes the verb impersonate on serviceaccounts, or use on serviceaccounts.use.janus.io; "+wayOut)
}

// TestToHaveAnAccountWriteAgainTakesTheRightToIt is about all moves of suspend and cancel: a user who
// may edit a Transaction may have it stop, and only who may have its ServiceAccount act may have
// it go on or roll back.
func TestToHaveAnAccountWriteAgainTakesTheRightToIt(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	awaitPolicies(t, in, namespace)
	who := editors(t, in, namespace)
	for _, suspend := range suspensions {
		for _, cancel := range cancels {
			made := edited(t, in, namespace, suspend, cancel, api.DeleteRelease)
			for _, nextSuspend := range suspensions {
				for _, nextCancel := range cancels {
					takes := resumes[[2]string{suspend, nextSuspend}] || writes[[2]string{cancel, nextCancel}]
					patch := `{"spec":{"suspend":` + nextSuspend + `,"cancel":` + nextCancel + `}}`
					for user, has := range who {
						client := in.as(t, user).Resource(api.Resource).Namespace(namespace)
						t.Run(strings.Join([]string{suspend, cancel, "to", nextSuspend, nextCancel, "by", user}, " "), func(t *testing.T) {
							_, err := client.Patch(t.Context(), made, types.MergePatchType, []byte(patch), metav1.PatchOptions{DryRun: tried})
							judged(t, err, user, namespace, takes, has, "without it you may set spec.suspend to true or spec.cancel to Stop")
						})
					}
				}
			}
		}
	}
}

// edited makes a Transaction as the administrator does, and returns its name.
func edited(t *testing.T, in installation, namespace, suspend, cancel string, onDelete api.DeletePolicy) string {
	t.Helper()
	client := in.dynamic.Resource(api.Resource).Namespace(namespace)
	made := transaction("deployer")
	made.Object["spec"].(map[string]any)["onDelete"] = string(onDelete)
	made, err := client.Create(t.Context(), made, metav1.CreateOptions{})
	require.NoError(t, err)
	patch := `{"spec":{"suspend":` + suspend + `,"cancel":` + cancel + `}}`
	_, err = client.Patch(t.Context(), made.GetName(), types.MergePatchType, []byte(patch), metav1.PatchOptions{})
	require.NoError(t, err)
	return made.GetName()
}

// TestToAskForARecoveryTakesTheRight is about the annotation that kubectl janus recover --now
// writes, and about an owner with which the Transaction is deleted.
func TestToAskForARecoveryTakesTheRight(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	awaitPolicies(t, in, namespace)
	who := editors(t, in, namespace)
	for user, has := range who {
		made := edited(t, in, namespace, "null", "null", api.DeleteRollback)
		t.Run("another owner by "+user, func(t *testing.T) {
			_, err := in.as(t, user).Resource(api.Resource).Namespace(namespace).Patch(t.Context(), made, types.MergePatchType,
				[]byte(`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"theirs","uid":"4711"}]}}`),
				metav1.PatchOptions{DryRun: tried})
			judged(t, err, user, namespace, true, has, "without it you may set spec.suspend to true or spec.cancel to Stop")
		})
	}
	for _, c := range []struct {
		title, from, to string
		takes           bool
	}{
		{"asked", "null", `"1"`, true},
		{"asked once more", `"1"`, `"2"`, true},
		{"asked for nothing", "null", `""`, false},
		{"asked for as before", `"1"`, `"1"`, false},
		{"asked no more", `"1"`, "null", false},
	} {
		made := edited(t, in, namespace, "null", "null", api.DeleteRelease)
		annotate := func(value string) []byte {
			return []byte(`{"metadata":{"labels":{"team":"blue"},"annotations":{"` + api.RecoverAnnotation + `":` + value + `}}}`)
		}
		_, err := in.dynamic.Resource(api.Resource).Namespace(namespace).Patch(t.Context(), made, types.MergePatchType, annotate(c.from), metav1.PatchOptions{})
		require.NoError(t, err)
		for user, has := range who {
			t.Run(c.title+" by "+user, func(t *testing.T) {
				_, err := in.as(t, user).Resource(api.Resource).Namespace(namespace).
					Patch(t.Context(), made, types.MergePatchType, annotate(c.to), metav1.PatchOptions{DryRun: tried})
				judged(t, err, user, namespace, c.takes, has, "without it you may set spec.suspend to true or spec.cancel to Stop")
			})
		}
	}
}

// TestToDeleteWhatIsThenRolledBackTakesTheRight is about a deletion that has Janus write.
func TestToDeleteWhatIsThenRolledBackTakesTheRight(t *testing.T) {
	in := install(t)
	namespace := testcluster.Namespace(t)
	awaitPolicies(t, in, namespace)
	who := editors(t, in, namespace)
	for _, controller := range []string{"system:serviceaccount:kube-system:namespace-controller", "system:serviceaccount:kube-system:generic-garbage-collector"} {
		bind(t, in, namespace, "janus-editor", controller)
		awaitCreator(t, in, namespace, controller)
		who[controller] = true
	}
	for _, c := range []struct {
		title, suspend, cancel string
		onDelete               api.DeletePolicy
		phase                  api.Phase
		takes                  bool
	}{
		{"one that is rolled back then", "null", "null", api.DeleteRollback, api.PhaseCommitting, true},
		{"a suspended one that is rolled back then", "true", "null", api.DeleteRollback, api.PhaseCommitting, true},
		{"one whose suspended rollback goes on then", "true", "null", api.DeleteRelease, api.PhaseRollingBack, true},
		{"one that is left then", "null", "null", api.DeleteRelease, api.PhaseCommitting, false},
		{"a stopped one", "null", `"Stop"`, api.DeleteRollback, api.PhaseCommitting, false},
		{"one whose rollback was stopped", "true", `"Stop"`, api.DeleteRollback, api.PhaseRollingBack, false},
		{"one that is being rolled back", "null", "null", api.DeleteRollback, api.PhaseRollingBack, false},
		{"one that has changed nothing", "true", "null", api.DeleteRollback, api.PhasePrepared, false},
		{"one that has not begun", "true", "null", api.DeleteRollback, api.PhasePending, false},
		{"one that has failed", "null", "null", api.DeleteRollback, api.PhaseFailed, false},
	} {
		made := edited(t, in, namespace, c.suspend, c.cancel, c.onDelete)
		in.reaches(t, namespace, made, c.phase)
		for user, has := range who {
			t.Run(c.title+" by "+user, func(t *testing.T) {
				err := in.as(t, user).Resource(api.Resource).Namespace(namespace).Delete(t.Context(), made, metav1.DeleteOptions{DryRun: tried})
				judged(t, err, user, namespace, c.takes, has, "without it set spec.cancel to Stop first, and what has landed stays")
			})
		}
	}
}

// reaches writes the phase of a Transaction as janusd does.
func (in installation) reaches(t *testing.T, namespace, name string, phase api.Phase) {
	t.Helper()
	client := in.as(t, janusd.User).Resource(api.Resource).Namespace(namespace)
	txn, err := client.Get(t.Context(), name, metav1.GetOptions{})
	require.NoError(t, err)
	require.NoError(t, unstructured.SetNestedField(txn.Object, string(phase), "status", "phase"))
	_, err = client.UpdateStatus(t.Context(), txn, metav1.UpdateOptions{})
	require.NoError(t, err)
}
