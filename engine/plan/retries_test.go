package plan

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

// A success gives what is tried next all of its attempts. An intent that is written, or
// withdrawn, is none: it would be one at each retry.
func TestFailuresCountInARow(t *testing.T) {
	status := func(phase api.Phase, states ...api.ItemState) *api.TransactionStatus {
		s := &api.TransactionStatus{Phase: phase, Failures: 3, TimedOut: &api.TimedOut{Object: "ConfigMap shop/a", Attempts: 2}}
		for _, state := range states {
			s.Items = append(s.Items, api.Item{State: state})
		}
		return s
	}
	ready := status(api.PhaseCommitting, api.ItemCommitted)
	ready.Items[0].ReadyTime = &metav1.Time{}
	for name, tt := range map[string]struct {
		before, after *api.TransactionStatus
		want          int32
	}{
		"nothing has changed":            {status(api.PhaseCommitting, api.ItemCommitting), status(api.PhaseCommitting, api.ItemCommitting), 5},
		"the first attempt":              {status(""), status(api.PhasePending), 5},
		"the pre-flight":                 {status(api.PhasePending), status(api.PhasePreparing, api.ItemPending), 0},
		"the locks and before-images":    {status(api.PhasePreparing, api.ItemPending), status(api.PhasePrepared, api.ItemPrepared), 0},
		"a before-image":                 {status(api.PhaseCommitting, api.ItemPending), status(api.PhaseCommitting, api.ItemCommitting), 0},
		"a condition that does not hold": {status(api.PhaseCommitting, api.ItemPrepared), status(api.PhaseCommitting, api.ItemSkipped), 0},
		"an intent":                      {status(api.PhaseCommitting, api.ItemPrepared), status(api.PhaseCommitting, api.ItemCommitting), 5},
		"an intent that is withdrawn":    {status(api.PhaseCommitting, api.ItemCommitting), status(api.PhaseCommitting, api.ItemPrepared), 5},
		"a change":                       {status(api.PhaseCommitting, api.ItemCommitting), status(api.PhaseCommitting, api.ItemCommitted), 0},
		"a target that is ready":         {status(api.PhaseCommitting, api.ItemCommitted), ready, 0},
		"the commit":                     {status(api.PhaseCommitting, api.ItemCommitted), status(api.PhaseCommitted, api.ItemCommitted), 0},
		"a refusal":                      {status(api.PhaseCommitting, api.ItemCommitting), status(api.PhaseRollingBack, api.ItemRejected), 5},
		"an intent to roll back":         {status(api.PhaseRollingBack, api.ItemCommitted), status(api.PhaseRollingBack, api.ItemRollingBack), 5},
		"one that is withdrawn":          {status(api.PhaseRollingBack, api.ItemRollingBack), status(api.PhaseRollingBack, api.ItemCommitted), 5},
		"a compensation":                 {status(api.PhaseRollingBack, api.ItemRollingBack), status(api.PhaseRollingBack, api.ItemRolledBack), 0},
		"one that is given up":           {status(api.PhaseRollingBack, api.ItemRollingBack), status(api.PhaseRollingBack, api.ItemUnresolved), 5},
		"the end of a rollback":          {status(api.PhaseRollingBack, api.ItemRolledBack), status(api.PhaseRolledBack, api.ItemRolledBack), 5},
		"another recovery":               {status(api.PhaseFailed, api.ItemUnresolved), status(api.PhaseRollingBack, api.ItemRollingBack), 5},
	} {
		t.Run(name, func(t *testing.T) {
			CountFailures(tt.before, tt.after, 2)
			assert.Equal(t, tt.want, tt.after.Failures)
			assert.Equal(t, tt.want == 0, tt.after.TimedOut == nil, "time-outs count in a row, too")
		})
	}
}
