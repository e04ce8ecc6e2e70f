package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
)

// The undo gives "a" its old value and removes "b"; another client has written "c" and a note in between.
func TestAnUndoIsInEffectWhateverOthersHaveWrittenBesideIt(t *testing.T) {
	undo := &run{Run: &Run{Spec: api.TransactionSpec{UndoOf: &api.UndoOf{}, Changes: []api.Change{{Type: api.Update}}}, Items: []Ref{mapA}}}
	undo.contents = []map[string]any{{"apiVersion": "v1", "kind": "ConfigMap", "metadata": tree{"name": "a"}, "data": tree{"a": "old", "c": "x"}}}
	content := func(data, annotations tree) *version {
		meta := tree{"name": "a", "namespace": ns}
		if annotations != nil {
			meta["annotations"] = annotations
		}
		return &version{Version: &Version{Ref: mapA, Object: &unstructured.Unstructured{Object: tree{"metadata": meta, "data": data}}}}
	}
	note := tree{"note": "theirs"}
	for _, c := range []struct {
		name  string
		found tree
		noted tree
		want  bool
	}{
		{"theirs stays", tree{"a": "old", "c": "y"}, note, true},
		{"a value is not undone", tree{"a": "new", "c": "y"}, note, false},
		{"a value that the undo removes stays", tree{"a": "old", "b": "new", "c": "y"}, note, false},
		{"what another client has written is overwritten", tree{"a": "old", "c": "x"}, note, false},
		{"what another client has added is removed", tree{"a": "old", "c": "y"}, nil, false},
	} {
		was, live, made := content(tree{"a": "new", "b": "new", "c": "x"}, nil), content(tree{"a": "new", "b": "new", "c": "y"}, note), content(c.found, c.noted)
		was.Revision, live.Revision, made.Revision = 1, 2, 3
		made.before, made.by = live, &write{run: undo}
		judge := &trial{objects: map[Ref]*object{mapA: {versions: []*version{was, live, made}}}}
		by := &state{items: []item{{before: &image{version: "1"}}}}
		assert.Equal(t, c.want, judge.hasContent(undo, 0, made, by), c.name)

		undo.Spec.UndoOf = nil
		assert.False(t, judge.hasContent(undo, 0, made, by), "an Update that is not derived has all of its content")
		undo.Spec.UndoOf = &api.UndoOf{}
	}
}
