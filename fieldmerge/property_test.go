package fieldmerge

import (
	"reflect"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
)

func TestWithNobodyElseEverythingIsAsBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := drawScene(t, r, nil, 0)
		at := s.describe()
		wanted := s.undo()
		if len(wanted.Conflicts)+len(wanted.Reclaimed) > 0 {
			r.Fatalf("conflicts with nobody: %v, reclaimed %v%s", wanted.Conflicts, wanted.Reclaimed, at)
		}
		if !reflect.DeepEqual(s.live, s.before) {
			r.Fatalf("got %s%s", line(s.live), at)
		}
	})
}

func TestFieldByFieldOthersKeepWhatTheyWroteAndTheRestIsAsBefore(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := drawScene(t, r, []string{"a", "b", "x", "y"}, rapid.IntRange(1, 3).Draw(r, "writes since"))
		got := s.images().Restore()
		checkFields(r, s, got)
		checkConflicts(r, s, got)
		checkOrder(r, s, got.Desired)
		wellFormed(r, got.Desired)
	})
}

// checkFields holds each field that has one value against the four cases. What is
// in a keyed item that the change added goes with the item.
func checkFields(r *rapid.T, s *scene, got Restoration) {
	b, a, l, now := flat(fields(s.before)), flat(fields(s.after)), flat(fields(s.live)), flat(fields(got.Desired))
	disputed := append(conflictsOf(got), conflictsOf(Restoration{Conflicts: got.Reclaimed})...)
	for path := range union(b, a, l, now) {
		bv, av, lv, nv := at(b, path), at(a, path), at(l, path), at(now, path)
		inDispute := slices.ContainsFunc(disputed, func(c string) bool { return within(path, c) })
		var want any
		switch {
		case inDispute, reflect.DeepEqual(bv, av), reflect.DeepEqual(lv, bv):
			want = lv
		case reflect.DeepEqual(lv, av) && !s.claimedSince(path):
			want = bv
		default:
			if bv != (absent{}) || nv != (absent{}) || !s.addedItem(path) {
				r.Fatalf("%s was %v, made %v, is %v and is no conflict but %v%s", path, bv, av, lv, nv, s.describe())
			}
			continue
		}
		if bv == (absent{}) && nv == (absent{}) && s.addedItem(path) {
			continue
		}
		if !reflect.DeepEqual(nv, want) {
			r.Fatalf("%s was %v, made %v, is %v, and becomes %v, want %v%s\nconflicts %v", path, bv, av, lv, nv, want, s.describe(), disputed)
		}
	}
}

func union(maps ...map[string]any) map[string]bool {
	out := map[string]bool{}
	for _, m := range maps {
		for key := range m {
			out[key] = true
		}
	}
	return out
}

func at(m map[string]any, path string) any {
	if v, ok := m[path]; ok {
		return v
	}
	return absent{}
}

// addedItem reports whether a path is in a keyed item that the change added and
// that nobody else has claimed anything of.
func (s *scene) addedItem(path string) bool {
	b, a := lists(fields(s.before)), lists(fields(s.after))
	for list, ids := range a {
		for _, id := range ids {
			if id[1] != '=' && within(path, list+id) && !slices.Contains(b[list], id) {
				return true
			}
		}
	}
	return false
}

// claimedSince reports whether another client owns a field who did not when the
// change had been made.
func (s *scene) claimedSince(path string) bool {
	had := ownersOf(s.made)[path]
	return slices.ContainsFunc(ownersOf(s.live)[path], func(id string) bool { return id[:2] != "ja" && !slices.Contains(had, id) })
}

func ownersOf(obj *unstructured.Unstructured) map[string][]string {
	out := map[string][]string{}
	list, _ := entriesOf(obj)
	for _, e := range list {
		for _, p := range pathsOf(e.set) {
			out[p] = append(out[p], e.Manager+" "+string(e.Operation))
		}
	}
	return out
}

// checkConflicts: each is about a field that the change altered and that another
// client owns now, or has removed; force gives it the value that it had.
func checkConflicts(r *rapid.T, s *scene, got Restoration) {
	images := s.images()
	images.Force = true
	forced := images.Restore()
	if !slices.Equal(conflictsOf(forced), conflictsOf(got)) {
		r.Fatalf("conflicts %v, and by force %v%s", got.Conflicts, forced.Conflicts, s.describe())
	}
	owners := ownersOf(s.live)
	value := func(obj *unstructured.Unstructured, c FieldConflict) any {
		v, ok := valueAt(obj.Object, c.path)
		return []any{v, ok}
	}
	for _, c := range got.Conflicts {
		altered := !reflect.DeepEqual(value(s.before, c), value(s.after, c))
		others := false
		for n := range c.path {
			others = others || exists(s.after.Object, c.path[:n+1]) && !exists(s.live.Object, c.path[:n+1])
		}
		for p, ids := range owners {
			others = others || within(p, c.Path) && len(withoutJanus(ids)) > 0
		}
		if !altered || !others {
			r.Fatalf("%s is a conflict: altered %t, of others %t%s", c.Path, altered, others, s.describe())
		}
		if now, was := value(forced.Desired, c), value(s.before, c); !reflect.DeepEqual(now, was) {
			r.Fatalf("%s is %v by force, and was %v%s", c.Path, now, was, s.describe())
		}
	}
	wellFormed(r, forced.Desired)
}

// checkOrder: lists are in the order of before, or, where others have put in order
// what we left, in theirs.
func checkOrder(r *rapid.T, s *scene, desired *unstructured.Unstructured) {
	b, a, l := lists(fields(s.before)), lists(fields(s.after)), lists(fields(s.live))
	for list, now := range lists(fields(desired)) {
		was, made, is := b[list], a[list], l[list]
		theirs := !slices.Equal(both(is, made), both(made, is))
		agree := slices.Equal(both(was, is), both(is, was))
		if !theirs && !slices.Equal(both(now, was), both(was, now)) {
			r.Fatalf("%s: %v, was %v%s", list, now, was, s.describe())
		}
		if (theirs || agree) && !slices.Equal(both(now, is), both(is, now)) {
			r.Fatalf("%s: %v, is %v%s", list, now, is, s.describe())
		}
	}
}

func TestUndoingTwiceIsUndoingOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		s := drawScene(t, r, []string{"a", "b", "x", "y"}, rapid.IntRange(0, 3).Draw(r, "writes since"))
		first := s.undo()
		once := s.live
		second := s.undo()
		if !reflect.DeepEqual(s.live, once) {
			r.Fatalf("once %s\ntwice %s%s", line(once), line(s.live), s.describe())
		}
		for _, path := range conflictsOf(second) {
			if !slices.Contains(conflictsOf(first), path) {
				r.Fatalf("%s is a conflict only the second time%s", path, s.describe())
			}
		}
		if Owned(s.live, isJanus) {
			r.Fatalf("ours is left: %s", line(s.live))
		}
	})
}

func TestWhateverTheThreeObjectsAre(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(r *rapid.T) {
		d := drawing{T: r, loose: true}
		before := thing(d.object())
		after := thing(d.edited(fields(before)))
		live := thing(d.edited(fields(after)))
		images := Images{Type: thingType, Before: before, After: after, Live: live, Ours: nobody}
		shown := "\nbefore " + line(before) + "\nafter " + line(after) + "\nlive " + line(live)
		copies := []*unstructured.Unstructured{before.DeepCopy(), after.DeepCopy(), live.DeepCopy()}
		once := images.Restore()
		wellFormed(r, once.Desired)
		for _, force := range []bool{false, true} {
			back := Images{Type: thingType, Before: before, After: after, Live: after, Ours: nobody, Force: force}
			if got := back.Restore(); !reflect.DeepEqual(got.Desired, before) || len(got.Conflicts) > 0 {
				r.Fatalf("with nobody else: %s, conflicts %v%s", line(got.Desired), got.Conflicts, shown)
			}
		}
		again := images
		again.Live = once.Desired
		twice := again.Restore()
		if !reflect.DeepEqual(twice.Desired, once.Desired) {
			r.Fatalf("once %s\ntwice %s%s", line(once.Desired), line(twice.Desired), shown)
		}
		checkStanding(r, before, after, live, shown)
		if !reflect.DeepEqual([]*unstructured.Unstructured{before, after, live}, copies) {
			r.Fatal("an argument was changed")
		}
	})
}

// checkStanding: there is drift where objects differ, and the change stands where
// it left the object, or has not begun.
func checkStanding(r *rapid.T, before, after, live *unstructured.Unstructured, shown string) {
	images := Images{Type: thingType, Before: before, After: after, Live: live, Ours: nobody}
	if found := images.Drift(); (len(found) == 0) != reflect.DeepEqual(before, live) {
		r.Fatalf("drift %v%s", found, shown)
	}
	images.Live = after
	if got := images.Stand(); got != AtAfter {
		r.Fatalf("what the change made stands at %d%s", got, shown)
	}
	images.Live = before
	if got := images.Stand(); got != AtBefore && !reflect.DeepEqual(before, after) {
		r.Fatalf("what was before stands at %d%s", got, shown)
	}
}

// A keyed item that others have removed is not put back in parts, without its key.
func TestAnItemThatTheChangeAlteredAndOthersRemovedStaysRemoved(t *testing.T) {
	t.Parallel()
	was := `{"spec":{"parts":[{"name":"x","count":1,"env":[{"name":"x","value":"v"}]}]}}`
	for _, c := range []struct{ after, conflict string }{
		{`{"spec":{"parts":[{"name":"x","env":[{"name":"x","value":"v"}]}]}}`, `.spec.parts[name="x"].count`},
		{`{"spec":{"parts":[{"name":"x","count":1}]}}`, `.spec.parts[name="x"].env`},
		{`{"spec":{"parts":[{"name":"x","count":1,"env":[{"name":"x"}]}]}}`, `.spec.parts[name="x"].env[name="x"].value`},
		{`{"spec":{"parts":[{"name":"x","count":1,"note":"ours","env":[{"name":"x","value":"v"}]}]}}`, ""},
	} {
		i := Images{Type: thingType, Before: thingOf(t, was), After: thingOf(t, c.after), Live: thingOf(t, `{"spec":{"parts":[]}}`), Ours: nobody}
		got, want := i.Restore(), i.Live
		var conflicts []string
		if c.conflict != "" {
			conflicts = []string{c.conflict}
		}
		if !reflect.DeepEqual(got.Desired, want) || !slices.Equal(conflictsOf(got), conflicts) {
			t.Errorf("%s: got %s, conflicts %v", c.after, line(got.Desired), got.Conflicts)
		}
		i.Force = true
		if c.conflict != "" {
			want = i.Before
		}
		if got := i.Restore(); !reflect.DeepEqual(got.Desired, want) {
			t.Errorf("%s: by force %s", c.after, line(got.Desired))
		}
	}
}
