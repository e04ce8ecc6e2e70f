package wiring

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// What an earlier change of the Transaction says of an object that is read for a later one.
func TestAnObjectIsTheOneThatAnEarlierChangeHasLeft(t *testing.T) {
	config := api.Target{APIVersion: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "config"}
	object := func(uid types.UID) *unstructured.Unstructured {
		u := &unstructured.Unstructured{}
		u.SetUID(uid)
		return u
	}
	going := object("deleted")
	going.SetDeletionTimestamp(&metav1.Time{Time: time.Unix(1, 0)})
	before := &api.BeforeImage{UID: "changed"}
	for name, tt := range map[string]struct {
		kind    api.ChangeType
		earlier api.Item
		now     *unstructured.Unstructured
		want    string
	}{
		"what was changed":                            {api.Patch, api.Item{State: api.ItemCommitted, Before: before}, object("changed"), ""},
		"another than was changed":                    {api.Patch, api.Item{State: api.ItemCommitted, Before: before}, object("other"), errclass.Drifted},
		"nothing, though it was changed":              {api.Update, api.Item{State: api.ItemCommitted, Before: before}, nil, errclass.Drifted},
		"what was created":                            {api.Create, api.Item{State: api.ItemCommitted, CreatedUID: "made"}, object("made"), ""},
		"another than was created":                    {api.Create, api.Item{State: api.ItemCommitted, CreatedUID: "made"}, object("other"), errclass.Drifted},
		"nothing, though it was created":              {api.Create, api.Item{State: api.ItemCommitted, CreatedUID: "made"}, nil, ""},
		"what was created, and it is not known which": {api.Create, api.Item{State: api.ItemCommitted}, object("other"), ""},
		"nothing, after a deletion":                   {api.Delete, api.Item{State: api.ItemCommitted, Before: &api.BeforeImage{UID: "deleted"}}, nil, ""},
		"what was deleted":                            {api.Delete, api.Item{State: api.ItemCommitted, Before: &api.BeforeImage{UID: "deleted"}}, object("deleted"), errclass.StaleVersion},
		"another than was deleted":                    {api.Delete, api.Item{State: api.ItemCommitted, Before: &api.BeforeImage{UID: "deleted"}}, object("other"), ""},
		"what is being deleted":                       {api.Delete, api.Item{State: api.ItemCommitted, Before: &api.BeforeImage{UID: "deleted"}}, going, ""},
		"what is yet to be deleted":                   {api.Delete, api.Item{State: api.ItemPrepared, Before: &api.BeforeImage{UID: "deleted"}}, object("deleted"), ""},
		"what was not changed after all":              {api.Patch, api.Item{State: api.ItemRejected, Before: before}, object("other"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			txn := &api.Transaction{}
			tt.earlier.Name, tt.earlier.Target, tt.earlier.Resource = "first", config, "configmaps"
			txn.Spec.Changes = []api.Change{{Type: tt.kind, Target: config}, {Type: api.Create, Target: config}}
			txn.Status.Items = []api.Item{tt.earlier, {Name: "second", Target: config, Resource: "configmaps"}}
			ref, err := refOf(txn.Status.Items[1])
			require.NoError(t, err)

			err = stillThere(txn, 1, ref, tt.now)

			assert.Equal(t, tt.want, reasonOf(err))
			if tt.want != "" {
				assert.ErrorContains(t, err, "item first", "it names the item")
			}
		})
	}
}

func reasonOf(err error) string {
	if err == nil {
		return ""
	}
	return errclass.ReasonOf(err)
}
