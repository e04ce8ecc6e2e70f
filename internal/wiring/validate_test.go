package wiring

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/lockmgr"
	"janus.io/janus/snapshot"
	"janus.io/janus/test/testcluster"
)

// newPlanner has, in a namespace, a ServiceAccount deployer that may do anything in
// the cluster and one, reader, that may read ConfigMaps.
func newPlanner(t *testing.T) (planner *Planner, namespace string) {
	t.Helper()
	return newPlannerBy(t, testcluster.Shared(t).Config())
}

// newPlannerBy is newPlanner with a configuration of its own.
func newPlannerBy(t *testing.T, config *rest.Config) (planner *Planner, namespace string) {
	t.Helper()
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	namespace = testcluster.Namespace(t)
	for _, name := range []string{"deployer", "reader"} {
		_, err = kube.CoreV1().ServiceAccounts(namespace).Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: namespace},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: "deployer"}},
	}
	_, err = kube.RbacV1().ClusterRoleBindings().Create(t.Context(), binding, metav1.CreateOptions{})
	require.NoError(t, err)
	review := &authzv1.SubjectAccessReview{Spec: authzv1.SubjectAccessReviewSpec{
		User: "system:serviceaccount:" + namespace + ":deployer", ResourceAttributes: &authzv1.ResourceAttributes{Verb: "create", Resource: "namespaces"},
	}}
	require.Eventually(t, func() bool {
		answer, err := kube.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
		return err == nil && answer.Status.Allowed
	}, time.Minute, time.Millisecond, "the API server takes a moment to know of the rights")
	return &Planner{
		shared: &shared{
			sources: newSources(nil, clock.RealClock{}, 1), rights: newRights(clock.RealClock{}),
			resolver: target.Discover(kube.Discovery()),
			clients:  target.NewClients(config, kube.CoreV1(), "system:serviceaccount:janus-system:janusd"),
			store:    snapshot.NewStore(kube, nil), images: newImages(), parallel: 2, clock: clock.RealClock{},
		},
		imagesLimit: DefaultImagesLimit, tried: newDryRunCache(clock.RealClock{}),
		locks: lockmgr.New(kube.CoordinationV1(), lockmgr.Options{Namespace: "janus-system"}),
	}, namespace
}

func specOf(t *testing.T, namespace, text string) *api.Transaction {
	t.Helper()
	txn := &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "deploy", UID: "7f3a"}}
	txn.Spec.ServiceAccountName = "deployer"
	require.NoError(t, yaml.UnmarshalStrict([]byte(text), &txn.Spec))
	return txn
}

const (
	patchMap  = "{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Patch, content: {data: {v: '2'}}}"
	makeCRD   = "{target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: widgets.example.com}, type: Create, content: {spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true}]}}}"
	patchCRD  = "{target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: widgets.example.com}, type: Patch, content: {spec: {group: example.com, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true}]}}}"
	makeThing = "{target: {apiVersion: example.com/v1, kind: Widget, name: w}, type: Create, content: {spec: {}}}"
	makeSpace = "{target: {apiVersion: v1, kind: Namespace, name: new-space}, type: Create, content: {}}"
	inSpace   = "{target: {apiVersion: v1, kind: ConfigMap, name: a, namespace: new-space}, type: Create, content: {}}"
)

// withoutEnd has a pre-flight go on until it is over.
func withoutEnd() bool { return false }

func TestValidate(t *testing.T) {
	p, namespace := newPlanner(t)
	for _, tt := range []struct {
		name, spec, reason, says string
		deferred                 []bool
	}{
		{name: "a patch", spec: "changes: [" + patchMap + "]", deferred: []bool{false}},
		{name: "a kind that an earlier change makes", spec: "changes: [" + makeCRD + ", " + makeThing + "]", deferred: []bool{false, true}},
		{name: "a kind that an earlier change adds to a CRD", spec: "changes: [" + patchCRD + ", " + makeThing + "]", deferred: []bool{false, true}},
		{name: "a kind that a later change makes", spec: "changes: [" + makeThing + ", " + makeCRD + "]", reason: errclass.KindNotFound, says: "no kind Widget in example.com/v1"},
		{name: "a namespace that an earlier change makes", spec: "changes: [" + makeSpace + ", " + inSpace + "]", deferred: []bool{false, true}},
		{name: "a kind that is not served", spec: "changes: [{target: {apiVersion: v1, kind: NoSuchKind, name: a}, type: Delete}]", reason: errclass.KindNotFound, says: "NoSuchKind a"},
		{name: "a namespace for a cluster-scoped kind", spec: "changes: [{target: {apiVersion: v1, kind: Namespace, name: a, namespace: b}, type: Delete}]", reason: errclass.Invalid, says: "cluster-scoped"},
		{name: "two changes of one name", spec: "changes: [{name: x, target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Delete}, {name: x, target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Delete}]", reason: errclass.Invalid, says: `the name "x" is used by two changes`},
		{name: "a name that is another change's position", spec: "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Delete}, {name: '0', target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Delete}]", reason: errclass.Invalid, says: `the name "0" is used by two changes`},
		{name: "an unknown type", spec: "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Frobnicate, content: {}}]", reason: errclass.Invalid, says: `unknown type of change "Frobnicate"; use Create, Update, Patch or Delete`},
		{name: "a Delete with content", spec: "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Delete, content: {}}]", reason: errclass.Invalid, says: "a Delete has no content"},
		{name: "a Create without content", spec: "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Create}]", reason: errclass.Invalid, says: "a Create needs content"},
		{name: "content of another object", spec: "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Create, content: {kind: Secret}}]", reason: errclass.Invalid, says: `content.kind is "Secret"`},
		{name: "content in another namespace", spec: "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: a}, type: Create, content: {metadata: {namespace: kube-system}}}]", reason: errclass.Invalid, says: `content.metadata.namespace is "kube-system"`},
		{name: "the namespace of the Transaction itself", spec: "changes: [{target: {apiVersion: v1, kind: Namespace, name: " + namespace + "}, type: Delete, acceptLoss: true}]", reason: errclass.Irreversible, says: "it holds the Transaction itself"},
		{name: "the kind of Transactions", spec: "changes: [{target: {apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: transactions.backup.janus.io}, type: Delete, acceptLoss: true}]", reason: errclass.Irreversible, says: "it holds the Transaction itself"},
		{name: "a name that is part of a path", spec: "changes: [{target: {apiVersion: v1, kind: ConfigMap, name: ..}, type: Delete}]", reason: errclass.Invalid, says: `no object can have the name "..": may not be '..'`},
		{name: "a ServiceAccount that does not exist", spec: "{serviceAccountName: nobody, changes: [" + patchMap + "]}", reason: errclass.ServiceAccountGone, says: "it does not exist"},
		{name: "a ServiceAccount that may not", spec: "{serviceAccountName: reader, changes: [" + patchMap + "]}", reason: errclass.AccessDenied, says: "ServiceAccount " + namespace + "/reader may not"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			found, err := p.Validate(t.Context(), specOf(t, namespace, tt.spec), withoutEnd)
			if tt.reason != "" {
				if len(found.Problems) > 0 {
					require.NoError(t, err)
					err = found.Problems[0].Err
				}
				require.ErrorContains(t, err, tt.says)
				assert.Equal(t, tt.reason, errclass.ReasonOf(err))
				assert.Equal(t, errclass.Terminal, errclass.ClassOf(err))
				return
			}
			require.NoError(t, err)
			var deferred []bool
			for _, item := range found.Items {
				deferred = append(deferred, item.Deferred)
				assert.Equal(t, api.ItemPending, item.State)
				assert.NotEmpty(t, item.Name)
				assert.NotEmpty(t, item.Resource)
			}
			assert.Equal(t, tt.deferred, deferred)
		})
	}
}

func TestAllThatIsWrongIsReportedAtOnce(t *testing.T) {
	p, namespace := newPlanner(t)
	spec := specOf(t, namespace, `
changes:
- {target: {apiVersion: v1, kind: NoSuchKind, name: a}, type: Delete}
- {target: {apiVersion: v1, kind: ConfigMap, name: b}, type: Create}
- {target: {apiVersion: v1, kind: ConfigMap, name: c}, type: Delete}
- {target: {apiVersion: v1, kind: ConfigMap, name: d}, type: Patch, content: {data: {v: '2'}}}
- {target: {apiVersion: v1, kind: ConfigMap, name: e}, type: Create, content: {daat: {v: '2'}}}
- {target: {apiVersion: batch/v1, kind: Job, name: f}, type: Delete}
`)
	found, err := p.Validate(t.Context(), spec, withoutEnd)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"0 KindNotFound", "1 Invalid", "3 NotFound", "4 Invalid", "5 Irreversible",
	}, problemsOf(found))

	spec.Spec.ServiceAccountName = "reader"
	found, err = p.Validate(t.Context(), spec, withoutEnd)
	require.NoError(t, err)
	assert.Equal(t, []string{
		"0 KindNotFound", "1 Invalid", "2 AccessDenied", "2 AccessDenied", "2 AccessDenied", "2 AccessDenied", "3 AccessDenied", "3 AccessDenied", "3 AccessDenied",
		"4 AccessDenied", "4 AccessDenied", "4 AccessDenied", "5 AccessDenied", "5 AccessDenied", "5 AccessDenied", "5 AccessDenied",
	}, problemsOf(found))
}

// A pre-flight that is to stop does so between two requests, and is resumed: however often that happens,
// it gets on each time, and each change is tried once.
func TestAPreFlightThatStopsIsResumed(t *testing.T) {
	const changes = 20
	var tried atomic.Int32
	config := testcluster.Shared(t).Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return dryRuns{next, &tried} })
	p, namespace := newPlannerBy(t, config)
	var spec strings.Builder
	spec.WriteString("changes:\n")
	for n := range changes {
		fmt.Fprintf(&spec, "- {target: {apiVersion: v1, kind: ConfigMap, name: resumed-%d}, type: Create, content: {data: {v: '2'}}}\n", n)
	}
	txn := specOf(t, namespace, spec.String())
	now := func() bool { return true }
	calls := 0
	for ; calls < changes; calls++ {
		found, err := p.Validate(t.Context(), txn, now)
		require.NoError(t, err)
		require.Empty(t, found.Problems)
		if !found.Unfinished {
			require.Len(t, found.Items, changes)
			break
		}
	}
	assert.Greater(t, calls, changes/4, "it stops as soon as it may")
	assert.Less(t, calls, changes)
	assert.EqualValues(t, changes, tried.Load())
	assert.Empty(t, p.tried.unfinished)
	assert.Len(t, p.tried.of(txn.UID, p.tried.kept[txn.UID].account).items, changes, "none of them is to be tried again under the locks")

	// What was found once the pre-flight is over is not believed by another one, nor what is kept for too long.
	_, err := p.Validate(t.Context(), txn, withoutEnd)
	require.NoError(t, err)
	assert.EqualValues(t, 2*changes, tried.Load())
	found, err := p.Validate(t.Context(), txn, now)
	require.NoError(t, err)
	require.True(t, found.Unfinished)
	before := tried.Load()
	p.tried.unfinished[txn.UID].since = time.Now().Add(-resumeLife)
	_, err = p.Validate(t.Context(), txn, withoutEnd)
	require.NoError(t, err)
	assert.Equal(t, before+changes, tried.Load())

	// What cannot be kept is not stopped, for it would have to begin again.
	p.tried.unfinished["another"] = &resumable{tries: &tries{size: 2*maxDryRunBytes + 1}, since: time.Now()}
	found, err = p.Validate(t.Context(), txn, now)
	require.NoError(t, err)
	assert.False(t, found.Unfinished)
}

// dryRuns counts the changes that are tried.
type dryRuns struct {
	next http.RoundTripper
	n    *atomic.Int32
}

// RoundTrip implements http.RoundTripper.
func (d dryRuns) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Query().Has("dryRun") {
		d.n.Add(1)
	}
	return d.next.RoundTrip(r)
}

// problemsOf writes down of which item there is a problem, and its reason.
func problemsOf(found plan.Preflight) (out []string) {
	for _, p := range found.Problems {
		out = append(out, fmt.Sprint(p.Item, " ", errclass.ReasonOf(p.Err)))
	}
	return out
}

func TestTheNamespaceOfATargetIsFilledIn(t *testing.T) {
	p, namespace := newPlanner(t)
	found, err := p.Validate(t.Context(), specOf(t, namespace, "changes: ["+patchMap+", {target: {apiVersion: v1, kind: Namespace, name: a}, type: Delete}]"), withoutEnd)
	require.NoError(t, err)
	items := found.Items
	assert.Equal(t, namespace, items[0].Target.Namespace)
	assert.Empty(t, items[1].Target.Namespace)
	assert.Equal(t, []string{"0", "1"}, []string{items[0].Name, items[1].Name})
}
