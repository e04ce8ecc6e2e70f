package processes

import (
	"context"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
)

// historyLimit is how many committed Transactions janusd remembers if it is not told.
const historyLimit = 10

// remembered returns the uids of the Transactions that are remembered, by their numbers.
func (w *world) remembered(ctx context.Context) (map[int64]types.UID, error) {
	revisions, err := w.Kube.AppsV1().ControllerRevisions(w.namespace).List(ctx, metav1.ListOptions{LabelSelector: "app.kubernetes.io/managed-by=janus"})
	if err != nil {
		return nil, err
	}
	out := map[int64]types.UID{}
	for _, revision := range revisions.Items {
		out[revision.Revision] = ""
		if owner := metav1.GetControllerOf(&revision); owner != nil {
			out[revision.Revision] = owner.UID
		}
	}
	return out, nil
}

// judgeHistory wants that every Transaction which has committed has a number of its own,
// and that the last of them are remembered under theirs.
func (w *world) judgeHistory() {
	remembered, err := w.remembered(w.t.Context())
	require.NoError(w.t, err)
	numbers := map[int64]string{}
	for _, s := range w.load.all() {
		last := w.end(s)
		if last.Phase != api.PhaseCommitted {
			assert.NotContains(w.t, remembered, last.Revision, "%s is remembered and is %s", s.name, last.Phase)
			continue
		}
		if !assert.Positive(w.t, last.Revision, "the number of %s", s.name) {
			continue
		}
		assert.Empty(w.t, numbers[last.Revision], "%s has the number of %s", numbers[last.Revision], s.name)
		numbers[last.Revision] = s.name
		if owner, ok := remembered[last.Revision]; ok {
			assert.Equal(w.t, w.history.txns[s.name][0].uid, owner, "who is remembered as %d", last.Revision)
		}
	}
	for number := range remembered {
		assert.Contains(w.t, numbers, number, "a revision is of a Transaction that has committed")
	}
	assert.Len(w.t, remembered, min(historyLimit, len(numbers)), "the latest are remembered, and no others")
	w.counts.add("revisions", len(numbers))
}
