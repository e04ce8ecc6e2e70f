package mutate_test

import (
	"context"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
	"janus.io/janus/mutate"
)

// saga is several changes of one Transaction. It does for them what the engine and
// the adapter do: it knows which are in effect, and finds owners.
type saga struct {
	*env
	items     []*item
	committed map[int]bool
}

func (e *env) saga() *saga { return &saga{env: e, committed: map[int]bool{}} }

// then prepares one more change.
func (s *saga) then(kind api.ChangeType, content string) *item {
	s.t.Helper()
	i := s.plan(len(s.items), kind, content)
	i.change.Environment.OwnerRefs = member{s, len(s.items)}
	require.NoError(s.t, i.tryPrepare())
	s.items = append(s.items, i)
	return i
}

// do makes change n.
func (s *saga) do(n int) {
	s.t.Helper()
	s.items[n].landed()
	s.committed[n] = true
}

// landed makes a change and waits until it is in effect, as the engine does.
func (i *item) landed() {
	i.t.Helper()
	err := patiently(i.do)
	if !errclass.Is(err, errclass.Terminating) {
		require.NoError(i.t, err)
		return
	}
	i.takesEffect()
}

func (i *item) takesEffect() {
	i.t.Helper()
	i.within("it is in effect", func() bool {
		found, err := i.strategy.Observe(i.t.Context(), i.change, i.begun())
		require.NoError(i.t, err)
		return found == outcome.Applied
	})
}

// undoneInTheEnd undoes a change and waits for what that waits for.
func (i *item) undoneInTheEnd() {
	i.t.Helper()
	var err error
	i.within("it is rolled back", func() bool {
		err = patiently(i.undo)
		return !errclass.Is(err, errclass.Terminating)
	})
	require.NoError(i.t, err)
}

// undo undoes change n.
func (s *saga) undo(n int) {
	s.t.Helper()
	s.items[n].undoneInTheEnd()
	s.committed[n] = false
}

// rollBack rolls everything back, last first.
func (s *saga) rollBack() {
	s.t.Helper()
	for n := len(s.items) - 1; n >= 0; n-- {
		if s.committed[n] {
			s.undo(n)
		}
	}
}

// member is what item n knows of the others.
type member struct {
	*saga
	n int
}

func (m member) Owner(ctx context.Context, reference metav1.OwnerReference) (types.UID, bool, error) {
	ref, err := m.resolver.ResolveOwner(reference, m.namespace)
	if err != nil {
		return "", false, err
	}
	live, err := m.dynamic.Resource(ref.GVR).Namespace(ref.Namespace).Get(ctx, reference.Name, metav1.GetOptions{})
	if errclass.Is(err, errclass.NotFound) {
		return "", true, nil
	}
	if err != nil {
		return "", false, errclass.Wrap(err, "read the owner", ref.String(), false)
	}
	return live.GetUID(), true, nil
}

func (m member) Deleted(uid types.UID) bool {
	for n, i := range m.items[:m.n] {
		if m.committed[n] && i.record.Type == string(api.Delete) && i.record.Before.GetUID() == uid {
			return true
		}
	}
	return false
}

func (m member) CreatedAgain(uid types.UID) types.UID {
	for n, i := range m.items {
		if i.record.Type == string(api.Delete) && i.record.Before.GetUID() == uid && !m.committed[n] {
			if live := i.now(); live != nil && live.GetUID() != uid {
				return live.GetUID()
			}
		}
	}
	return ""
}

func (m member) ToBeDeleted(uid types.UID) bool {
	for n, i := range m.items {
		if live := i.now(); i.record.Type == string(api.Create) && m.committed[n] && live != nil && live.GetUID() == uid {
			return true
		}
	}
	return false
}

func (m member) Dependents(_ context.Context, uid types.UID) ([]mutate.Dependent, error) {
	var out []mutate.Dependent
	for n := m.n + 1; n < len(m.items); n++ {
		i := m.items[n]
		if m.committed[n] || i.record.Type != string(api.Delete) {
			continue
		}
		for _, owner := range i.record.Before.GetOwnerReferences() {
			if owner.UID == uid {
				out = append(out, mutate.Dependent{Change: i.change, Before: i.record.Before})
			}
		}
	}
	return out, nil
}
