package target

import (
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/test/testcluster"
)

func newClients(t *testing.T, own string) (*Clients, kubernetes.Interface, types.NamespacedName) {
	t.Helper()
	config := testcluster.Shared(t).Config()
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	account := types.NamespacedName{Namespace: testcluster.Namespace(t), Name: "deployer"}
	return NewClients(config, kube.CoreV1(), own), kube, account
}

func makeAccount(t *testing.T, kube kubernetes.Interface, account types.NamespacedName) types.UID {
	t.Helper()
	made, err := kube.CoreV1().ServiceAccounts(account.Namespace).Create(t.Context(),
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account.Name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	return made.UID
}

func deleteAccount(t *testing.T, kube kubernetes.Interface, account types.NamespacedName) {
	t.Helper()
	require.NoError(t, kube.CoreV1().ServiceAccounts(account.Namespace).Delete(t.Context(), account.Name, metav1.DeleteOptions{}))
}

func TestAnIdentityActsAsItsServiceAccountAndNoMore(t *testing.T) {
	clients, kube, account := newClients(t, "system:serviceaccount:janus-system:janusd")
	uid := makeAccount(t, kube, account)
	id, err := clients.As(t.Context(), account)
	require.NoError(t, err)
	assert.Equal(t, uid, id.UID)
	assert.Equal(t, account, id.Account)

	ref := Ref{GVK: schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}, GVR: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, Namespace: account.Namespace, Name: "a"}
	_, err = id.Resource(ref).Get(t.Context(), "a", metav1.GetOptions{})
	assert.Equal(t, errclass.AccessDenied, errclass.ReasonOf(err), "it was granted nothing")
	require.ErrorContains(t, err, "system:serviceaccount:"+account.Namespace+":deployer")

	review, err := id.Access.Create(t.Context(), &authzv1.SelfSubjectAccessReview{Spec: authzv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authzv1.ResourceAttributes{Verb: "get", Resource: "configmaps", Namespace: account.Namespace},
	}}, metav1.CreateOptions{})
	require.NoError(t, err)
	assert.False(t, review.Status.Allowed)

	// The API server gives it the groups of a ServiceAccount.
	self, err := id.Dynamic.Resource(schema.GroupVersionResource{Group: "authentication.k8s.io", Version: "v1", Resource: "selfsubjectreviews"}).
		Create(t.Context(), selfReview(), metav1.CreateOptions{})
	require.NoError(t, err)
	groups := nested(self.Object, "status", "userInfo")["groups"]
	assert.Contains(t, groups, "system:serviceaccounts:"+account.Namespace)
	assert.NotContains(t, groups, "system:masters")
}

func TestClientsAreMadeOncePerServiceAccount(t *testing.T) {
	clients, kube, account := newClients(t, "somebody")
	makeAccount(t, kube, account)
	first, err := clients.As(t.Context(), account)
	require.NoError(t, err)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			again, err := clients.As(t.Context(), account)
			if err != nil {
				t.Error(err)
			}
			assert.Same(t, first, again)
		})
	}
	all.Wait()
	other := types.NamespacedName{Namespace: account.Namespace, Name: "other"}
	makeAccount(t, kube, other)
	second, err := clients.As(t.Context(), other)
	require.NoError(t, err)
	assert.NotSame(t, first, second)
}

func TestClientsOfAServiceAccountThatIsGoneAreDropped(t *testing.T) {
	clients, kube, account := newClients(t, "somebody")
	old := makeAccount(t, kube, account)
	first, err := clients.As(t.Context(), account)
	require.NoError(t, err)

	deleteAccount(t, kube, account)
	_, err = clients.As(t.Context(), account)
	assert.Equal(t, errclass.ServiceAccountGone, errclass.ReasonOf(err))
	assert.Equal(t, errclass.Terminal, errclass.ClassOf(err))
	assert.Zero(t, clients.cache.Len())

	fresh := makeAccount(t, kube, account)
	second, err := clients.As(t.Context(), account)
	require.NoError(t, err)
	assert.NotSame(t, first, second)
	assert.NotEqual(t, old, fresh)
	assert.Equal(t, fresh, second.UID)
}

func TestClientsOfSoManyServiceAccountsAreKept(t *testing.T) {
	clients := NewClients(&rest.Config{Host: "https://127.0.0.1:1"}, nil, "somebody")
	of := func(n int) *Identity {
		id, err := clients.cached(types.NamespacedName{Namespace: "a", Name: fmt.Sprint(n)}, "uid", time.Time{})
		require.NoError(t, err)
		return id
	}
	first, second := of(0), of(1)
	for n := 2; n <= kept; n++ {
		assert.Same(t, first, of(0))
		of(n)
	}
	assert.Equal(t, kept, clients.cache.Len())
	assert.Same(t, first, of(0), "it has been used since")
	assert.NotSame(t, second, of(1), "it is made again")
}

func TestClientsOfAServiceAccountThatWasMadeAgainAreMadeAgain(t *testing.T) {
	clients, kube, account := newClients(t, "somebody")
	makeAccount(t, kube, account)
	first, err := clients.As(t.Context(), account)
	require.NoError(t, err)
	deleteAccount(t, kube, account)
	uid := makeAccount(t, kube, account) // between two looks
	second, err := clients.As(t.Context(), account)
	require.NoError(t, err)
	assert.NotSame(t, first, second)
	assert.Equal(t, uid, second.UID)
	assert.Equal(t, 1, clients.cache.Len())
}

func TestNobodyActsAsJanusItself(t *testing.T) {
	clients, kube, account := newClients(t, "")
	makeAccount(t, kube, account)
	clients.own = "system:serviceaccount:" + account.Namespace + ":" + account.Name
	_, err := clients.As(t.Context(), account)
	assert.Equal(t, errclass.AccessDenied, errclass.ReasonOf(err))
	require.ErrorContains(t, err, "it is the identity of Janus itself")
	assert.Zero(t, clients.cache.Len())
}

// One that was read is taken to exist for a moment, and no longer.
func TestAServiceAccountIsTrustedForAMoment(t *testing.T) {
	clients, kube, account := newClients(t, "janusd")
	now := clocktesting.NewFakePassiveClock(time.Now())
	clients.Trusting(Trust, now)
	uid := makeAccount(t, kube, account)
	first, err := clients.As(t.Context(), account)
	require.NoError(t, err)
	deleteAccount(t, kube, account)

	now.SetTime(now.Now().Add(Trust - time.Millisecond))
	again, err := clients.As(t.Context(), account)
	require.NoError(t, err)
	assert.Same(t, first, again)

	now.SetTime(now.Now().Add(time.Millisecond))
	_, err = clients.As(t.Context(), account)
	assert.Equal(t, errclass.ServiceAccountGone, errclass.ReasonOf(err))

	require.NotEqual(t, uid, makeAccount(t, kube, account))
	other, err := clients.As(t.Context(), account)
	require.NoError(t, err)
	assert.NotEqual(t, uid, other.UID, "what was found to be gone is not trusted")

	now.SetTime(now.Now().Add(-time.Hour))
	deleteAccount(t, kube, account)
	_, err = clients.As(t.Context(), account)
	assert.Equal(t, errclass.ServiceAccountGone, errclass.ReasonOf(err), "nor is one that was read by a clock which has been turned back")
}

func TestAServerThatIsAwayIsNoServiceAccountThatIsGone(t *testing.T) {
	config := testcluster.Shared(t).Config()
	config.Wrap(func(http.RoundTripper) http.RoundTripper {
		return roundTripper(func(*http.Request) (*http.Response, error) { return nil, http.ErrServerClosed })
	})
	kube, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = NewClients(config, kube.CoreV1(), "").As(t.Context(), types.NamespacedName{Namespace: "default", Name: "x"})
	assert.Equal(t, errclass.Unknown, errclass.ClassOf(err))
}

func selfReview() *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}}
}

func nested(object map[string]any, path ...string) map[string]any {
	found, _, _ := unstructured.NestedMap(object, path...)
	return found
}

// An API server that has just started may forbid what it allows a moment later, and the
// rights of Janus are no fault of a Transaction.
func TestThatJanusMayNotReadServiceAccountsIsWaitedFor(t *testing.T) {
	clients, kube, account := newClients(t, "janusd")
	makeAccount(t, kube, account)
	config := testcluster.Shared(t).Config()
	config.Impersonate.UserName = "janusd"
	denied, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	_, err = NewClients(config, denied.CoreV1(), "janusd").As(t.Context(), account)
	assert.Equal(t, errclass.Retryable, errclass.ClassOf(err))
	assert.Equal(t, errclass.AccessDenied, errclass.ReasonOf(err))
	require.ErrorContains(t, err, "Janus itself needs the right to get it")
	_, err = clients.As(t.Context(), account)
	require.NoError(t, err)
}
