package packages

import (
	"cmp"
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kube "k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/installed"
)

// pipelines are the kinds of objects that last and have steps, of which each runs a function, and
// where these are.
var pipelines = []struct {
	kind kube.GroupKind
	path []string
}{
	{kube.GroupKind{Group: "apiextensions.crossplane.io", Kind: change.CompositionKind}, []string{"spec", "pipeline"}},
	{kube.GroupKind{Group: "ops.crossplane.io", Kind: "CronOperation"}, []string{"spec", "operationTemplate", "spec", "pipeline"}},
	{kube.GroupKind{Group: "ops.crossplane.io", Kind: "WatchOperation"}, []string{"spec", "operationTemplate", "spec", "pipeline"}},
}

// runs finds what runs the functions that stop. They are named where they run, and need not be a
// dependency of any package.
func (l *looking) runs(ctx context.Context, c change.Change) {
	stopped := c.Stopped()
	if len(stopped) == 0 {
		return
	}
	l.found.Runs = map[string][]installed.Object{}
	for _, of := range pipelines {
		err := l.each(ctx, resources[of.kind], func(u *unstructured.Unstructured) error {
			steps, _, _ := unstructured.NestedSlice(u.Object, of.path...)
			for _, step := range steps {
				fields, _ := step.(map[string]any)
				name, _, _ := unstructured.NestedString(fields, "functionRef", "name")
				user := installed.Object{Group: of.kind.Group, Kind: of.kind.Kind, Name: u.GetName()}
				if slices.Contains(stopped, name) && !slices.Contains(l.found.Runs[name], user) {
					l.found.Runs[name] = append(l.found.Runs[name], user)
				}
			}
			return nil
		})
		if err != nil && !apierrors.IsNotFound(err) {
			l.found.RunsUnread = cmp.Or(l.found.RunsUnread, err.Error())
		}
	}
}
