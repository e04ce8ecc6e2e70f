package simulation

import (
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"janus.io/janus/test/apisim"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/oracle"
)

// kinds are the custom kinds that the modelled API server has.
var kinds = sync.OnceValue(func() []*apisim.Definition {
	var out []*apisim.Definition
	for _, file := range []string{"../../../deploy/crd/backup.janus.io_transactions.yaml", "testdata/widget.yaml"} {
		text, err := harness.ReadSource(file)
		if err != nil {
			panic(err)
		}
		d, err := apisim.Define(text)
		if err != nil {
			panic(err)
		}
		out = append(out, d)
	}
	return out
})

// observe writes the history of all objects.
func (w *world) observe(c apisim.Change) {
	w.history = append(w.history, oracle.Version{
		Ref:      oracle.Ref{Resource: qualified(c.New.GroupVersionKind()), Namespace: c.New.GetNamespace(), Name: c.New.GetName()},
		Revision: int64(c.Version), //nolint:gosec // a count of writes
		Object:   c.New, Deleted: c.Type == watch.Deleted,
	})
}

// qualified is the resource of a kind with its group, as in deployments.apps.
func qualified(gvk schema.GroupVersionKind) string {
	return schema.GroupResource{Group: gvk.Group, Resource: resourceOf(gvk).Resource}.String()
}

// uidOf is the uid that a Transaction had.
func (w *world) uidOf(name string) types.UID {
	for _, v := range w.history {
		if v.Ref.Resource == "transactions.backup.janus.io" && v.Ref.Name == name {
			return v.Object.GetUID()
		}
	}
	return ""
}

// stableName makes the names of locks the same whatever their hash is.
func stableName(name string) string {
	if strings.HasPrefix(name, "janus-lock-") {
		return name[:strings.LastIndex(name, "-")]
	}
	return name
}
