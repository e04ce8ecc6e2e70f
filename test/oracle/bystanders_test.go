package oracle

import "testing"

// adopt has the object that item 1 makes own one that is there.
func adopt(w *world, ref Ref) {
	w.foreign(ref, "operator", func(o tree) {
		o["metadata"].(tree)["ownerReferences"] = []any{tree{"apiVersion": "v1", "kind": "ConfigMap", "name": "b", "uid": w.live[mapB]["metadata"].(tree)["uid"]}}
	})
}

func TestWhatWasAdoptedAndGoesWithACreationIsFound(t *testing.T) {
	theirs := Ref{"configmaps", ns, "theirs"}
	make := func(w *world) { w.foreign(theirs, "person", func(o tree) { o["data"] = tree{"a": "b"} }) }
	for _, row := range []struct {
		name  string
		hooks map[string]func(*world)
		found bool
	}{
		{"it was there before", hooks{"begin": make, "turn": func(w *world) { adopt(w, theirs) }, "undone1": func(w *world) { w.foreignDelete(theirs) }}, true},
		{"it was made later", hooks{"turn": func(w *world) { make(w); adopt(w, theirs) }, "undone1": func(w *world) { w.foreignDelete(theirs) }}, false},
		{"it stays", hooks{"begin": make, "turn": func(w *world) { adopt(w, theirs) }}, false},
		{"it is free by then", hooks{"begin": make, "turn": func(w *world) { adopt(w, theirs) }, "undone1": func(w *world) {
			w.foreign(theirs, "operator", func(o tree) { delete(o["metadata"].(tree), "ownerReferences") })
			w.foreignDelete(theirs)
		}}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			var found bool
			for _, b := range rollBack(row.hooks).breaches() {
				found = found || b.Guarantee == Bystanders
			}
			if found != row.found {
				t.Errorf("found: %t, want %t", found, row.found)
			}
		})
	}
}
