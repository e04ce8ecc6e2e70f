package v1alpha1

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/utils/ptr"
)

func TestTimeOutsAreDescribedWhileTheyMatter(t *testing.T) {
	const way = "; mend the webhook that checks it, or make the object smaller if it has very many field managers"
	for name, tt := range map[string]struct {
		phase    Phase
		limit    *int32
		attempts int32
		want     string
	}{
		"forward, up to the limit for all":    {PhaseCommitting, nil, 3, "ConfigMap shop/a, 3 of 20 times in a row until Janus gives up" + way},
		"before the first phase is on record": {"", nil, 1, "ConfigMap shop/a, 1 of 20 times in a row until Janus gives up" + way},
		"with a limit of its own":             {PhasePending, ptr.To[int32](5), 3, "ConfigMap shop/a, 3 times in a row" + way},
		"a rollback does not end by it":       {PhaseRollingBack, nil, 30, "ConfigMap shop/a, 30 times in a row" + way},
		"the first of a rollback":             {PhaseRollingBack, nil, 1, "ConfigMap shop/a, once" + way},
		"after the end":                       {PhaseFailed, nil, 20, ""},
		"none":                                {PhaseCommitting, nil, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			txn := &Transaction{Spec: TransactionSpec{RetryLimit: tt.limit}, Status: TransactionStatus{Phase: tt.phase}}
			if tt.attempts > 0 {
				txn.Status.TimedOut = &TimedOut{Object: "ConfigMap shop/a", Attempts: tt.attempts}
			}
			assert.Equal(t, tt.want, txn.DescribeTimeouts())
		})
	}
}
