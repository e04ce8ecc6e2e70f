package wiring

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	authzclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// reviews answers access reviews, and counts them.
type reviews struct {
	authzclient.SelfSubjectAccessReviewInterface
	allow bool

	mu    sync.Mutex
	asked int
	// namespaces are those that were asked about.
	namespaces []string
}

func (r *reviews) Create(_ context.Context, review *authzv1.SelfSubjectAccessReview, _ metav1.CreateOptions) (*authzv1.SelfSubjectAccessReview, error) {
	r.mu.Lock()
	r.asked++
	if namespace := review.Spec.ResourceAttributes.Namespace; namespace != "" {
		r.namespaces = append(r.namespaces, namespace)
	}
	r.mu.Unlock()
	review.Status.Allowed = r.allow
	return review, nil
}

func asking(clock *clocktesting.FakeClock, r *reviews) session {
	txn := accountFirst()
	return session{
		shared: &shared{rights: newRights(clock)}, txn: txn,
		id: &target.Identity{UID: "one", Access: r, Account: types.NamespacedName{Namespace: "shop", Name: "deployer"}},
	}
}

// verbsOfACreate are get, create and delete.
const verbsOfACreate = 3

func TestAGrantedRightIsNotAskedForAgainForAWhile(t *testing.T) {
	clock := clocktesting.NewFakeClock(time.Unix(1, 0))
	r := &reviews{allow: true}
	s := asking(clock, r)
	ask := func(anew bool) int {
		t.Helper()
		before := r.asked
		denied, err := s.mayDo(t.Context(), []int{0}, anew)
		require.NoError(t, err)
		require.Empty(t, denied)
		return r.asked - before
	}
	assert.Equal(t, verbsOfACreate, ask(false))
	assert.Zero(t, ask(false))
	assert.Equal(t, verbsOfACreate, ask(true), "it is to be asked anew")
	s.id.UID = "two"
	assert.Equal(t, verbsOfACreate, ask(false), "of another ServiceAccount nothing is known")
	s.id.UID = "one"
	s.txn.Status.Items[0].Target.Namespace = "other"
	assert.Equal(t, verbsOfACreate, ask(false), "nor of another namespace")
	clock.Step(rightsLife)
	assert.Equal(t, verbsOfACreate, ask(false), "it was long ago")
}

// manyTargets is a Transaction with a target in each of many namespaces.
func manyTargets(s session, many int) []int {
	item, change := s.txn.Status.Items[0], s.txn.Spec.Changes[0]
	s.txn.Status.Items, s.txn.Spec.Changes = nil, nil
	var all []int
	for n := range many {
		item.Target.Namespace = fmt.Sprintf("ns-%d", n)
		s.txn.Status.Items, s.txn.Spec.Changes = append(s.txn.Status.Items, item), append(s.txn.Spec.Changes, change)
		all = append(all, n)
	}
	return all
}

func TestWhatMayBeDoneInAllNamespacesIsAskedOnce(t *testing.T) {
	r := &reviews{allow: true}
	s := asking(clocktesting.NewFakeClock(time.Unix(1, 0)), r)
	denied, err := s.mayDo(t.Context(), manyTargets(s, 1000), false)
	require.NoError(t, err)
	require.Empty(t, denied)
	assert.Equal(t, verbsOfACreate, r.asked)
	assert.Empty(t, r.namespaces)
}

func TestWhoMayNothingInThousandNamespacesIsToldSoon(t *testing.T) {
	r := &reviews{}
	s := asking(clocktesting.NewFakeClock(time.Unix(1, 0)), r)
	all := manyTargets(s, 1000)
	answers, err := s.askAll(t.Context(), all, false)
	require.NoError(t, err)
	denied, err := s.denials(t.Context(), all, answers)
	require.NoError(t, err)
	assert.Len(t, denied, mostRefused)
	assert.LessOrEqual(t, r.asked, 3*mostRefused, "for all namespaces, for each of some, and by name")
}

func TestARefusalAsksForRightsAgain(t *testing.T) {
	r := &reviews{allow: true}
	s := asking(clocktesting.NewFakeClock(time.Unix(1, 0)), r)
	_, err := s.mayDo(t.Context(), []int{0}, false)
	require.NoError(t, err)
	change := mutate.Change{Ref: target.Ref{}}
	r.allow = false
	refused := errclass.New(errclass.Terminal, errclass.AccessDenied, "create", change.Ref.String(), "%w", errors.New("forbidden"))
	_ = s.explainDenied(t.Context(), change, []string{"create"}, refused)
	before := r.asked
	s.txn.Status.Items[0].Type = api.Create
	answers, err := s.askAll(t.Context(), []int{0}, false)
	require.NoError(t, err)
	assert.Equal(t, verbsOfACreate, r.asked-before)
	for _, yes := range answers {
		assert.False(t, yes)
	}
}

func TestARefusalIsNotKept(t *testing.T) {
	r := &reviews{}
	s := asking(clocktesting.NewFakeClock(time.Unix(1, 0)), r)
	for range 2 {
		before := r.asked
		_, err := s.askAll(t.Context(), []int{0}, false)
		require.NoError(t, err)
		assert.Equal(t, verbsOfACreate, r.asked-before)
	}
}
