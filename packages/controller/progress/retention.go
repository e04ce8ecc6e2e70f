package progress

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	api "janus.io/janus/api/packages/v1alpha1"
)

// failedFactor is how many times as many are kept that have not ended well: they are rare, and
// what people look for.
const failedFactor = 3

// TooMany lists those that have ended and are beyond a limit, the oldest first.
func TooMany(all []*api.PackageTransaction, limit int) []*api.PackageTransaction {
	var well, badly []*api.PackageTransaction
	for _, p := range all {
		switch {
		case p.Status.CompletionTime == nil, p.DeletionTimestamp != nil, slices.Contains(p.Finalizers, api.Finalizer):
		case meta.IsStatusConditionTrue(p.Status.Conditions, api.Ready):
			well = append(well, p)
		default:
			badly = append(badly, p)
		}
	}
	return append(beyond(well, limit), beyond(badly, failedFactor*limit)...)
}

// beyond are those of some that are not among the latest.
func beyond(those []*api.PackageTransaction, limit int) []*api.PackageTransaction {
	slices.SortFunc(those, func(a, b *api.PackageTransaction) int {
		return cmp.Or(a.Status.CompletionTime.Compare(b.Status.CompletionTime.Time), cmp.Compare(a.Name, b.Name))
	})
	return those[:max(0, len(those)-limit)]
}
