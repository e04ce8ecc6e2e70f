package plan

import (
	"encoding/json"
	"fmt"

	api "janus.io/janus/api/v1alpha1"
)

// MaxBytes is how large a Transaction may become, status included. The store of the API
// server takes 1.5 MiB in one request and answers a larger one as if it were broken; the
// rest is room for conditions and for what the server adds.
const MaxBytes = 1_400_000

// MaxChanges is how many changes a Transaction may have, as in the CRD.
const MaxChanges = 1000

// itemBytes is what an item grows by while it runs: the name of its lock and of its
// before-image, with digest, uid and resourceVersion. Both names hold those of the
// target.
const itemBytes = 470

// digestBytes is what an item grows by in addition if its content is not in the Transaction.
const digestBytes = 120

// afterBytes is what an item grows by in addition if the Transaction may be remembered: a digest of
// what its change makes of the target.
const afterBytes = 45

// plannedBytes is what an item grows by in addition if its plan stands for approval, beside the
// fields, which are left out where there is no room for them.
const plannedBytes = 150

// resultBytes is what it grows by in addition for each condition of its change.
const resultBytes = 100 + resultMessage

// waitBytes is what an item grows by in addition if its compensation is waited for: the times of
// the wait.
const waitBytes = 160

// blockedBytes is what an item grows by in addition if others depend on it, beside the name of one.
const blockedBytes = 16

// StoredBytes is how large a Transaction whose status has all items will become at most.
func StoredBytes(t *api.Transaction) (int, error) {
	encoded, err := json.Marshal(t)
	if err != nil {
		return 0, fmt.Errorf("encode Transaction %s/%s: %w", t.Namespace, t.Name, err)
	}
	size := len(encoded)
	for i, item := range t.Status.Items {
		if NeedsApproval(t) {
			size += plannedBytes
		}
		if t.Spec.RevisionHistoryLimit == nil || *t.Spec.RevisionHistoryLimit > 0 {
			size += afterBytes
		}
		size += len(item.DependsOn) * (blockedBytes + len(item.Name)) // of each of them
		size += len(item.DeletedWith) * (len(item.Name) + 3)          // It is named by each of them.
		size += itemBytes + 2*(len(item.Target.Namespace)+len(item.Target.Kind)+len(item.Target.Name))
		if i < len(t.Spec.Changes) && t.Spec.Changes[i].ContentFrom != nil {
			size += digestBytes
		}
		if RestoredWhen(t, i) {
			size += waitBytes
		}
		if i < len(t.Spec.Changes) {
			size += resultBytes * conditionsOf(t.Spec.Changes[i])
		}
	}
	return size, nil
}
