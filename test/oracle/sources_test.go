package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/faultinject"
)

var (
	sourceMap    = Ref{"configmaps", ns, "source"}
	sourceSecret = Ref{"secrets", ns, "source"}
)

const (
	blue  = `{"data":{"color":"blue"}}`
	green = "data: {color: green}\n"
)

// hold has a source hold a content.
func hold(text string) func(*world) {
	return func(w *world) {
		w.foreign(sourceMap, "somebody", func(o tree) { o["data"] = tree{"key": text} })
	}
}

// pinnedTo has the content of the first change in a source, and pinned since the Transaction was
// accepted.
func pinnedTo(w *world, pinned string, from api.ContentSource) *world {
	change := &w.evidence.Runs[0].Spec.Changes[0]
	change.Content, change.ContentFrom = nil, &from
	for _, v := range w.evidence.History {
		if items := list(v.Object.Object, "status", "items"); v.Ref == txn && len(items) > 0 {
			items[0].(tree)["contentDigest"] = pinned
		}
	}
	return w
}

func fromMap() api.ContentSource {
	return api.ContentSource{ConfigMapKeyRef: &api.ContentKey{Name: "source", Key: "key"}}
}

// says has the Transaction wait for a reason.
func says(reason string) func(*world) {
	return func(w *world) {
		w.checkpoint(func(status tree) { status["conditions"] = []any{tree{"type": "Reconciling", "reason": reason}} })
		w.checkpoint(func(status tree) { delete(status, "conditions") })
	}
}

func TestBreachesAboutSourcesAreFound(t *testing.T) {
	demands := fromMap()
	demands.Digest = digest(green)
	withSecret := func(w *world) {
		w.foreign(sourceSecret, "somebody", func(o tree) { o["data"] = tree{"key": "eyJkYXRhIjp7ImNvbG9yIjoiYmx1ZSJ9fQ=="} })
	}
	changed := func(w *world, at int, to string) *world {
		n := 0
		for _, v := range w.evidence.History {
			if items := list(v.Object.Object, "status", "items"); v.Ref == txn && len(items) > 0 {
				if n++; n > at {
					items[0].(tree)["contentDigest"] = to
				}
			}
		}
		return w
	}
	for _, c := range []wrong{
		{"another content than was pinned", Atomicity, "does not have the content with the digest " + digest(green),
			pinnedTo(commit(hooks{"begin": hold(green), "intent": hold(blue)}), digest(green), fromMap())},
		{"another content than was pinned, and a rollback", Atomicity, "does not have the content with the digest " + digest(green),
			pinnedTo(rollBack(hooks{"begin": hold(green), "intent": hold(blue)}), digest(green), fromMap())},
		{"a digest of nothing", DurableIntent, "never held content with that digest before",
			pinnedTo(commit(hooks{"begin": hold(green)}), digest(blue), fromMap())},
		{"a digest of what the source held later", DurableIntent, "never held content with that digest before",
			pinnedTo(commit(hooks{"intent": hold(blue)}), digest(blue), fromMap())},
		{"no digest", DurableIntent, "its intent is recorded (@114) without the digest of its content",
			pinnedTo(commit(hooks{"begin": hold(blue)}), "", fromMap())},
		{"a digest that does not stay", DurableIntent, "the digest of its content went from " + digest(blue),
			changed(pinnedTo(commit(hooks{"begin": hold(blue)}), digest(blue), fromMap()), 3, digest(green))},
		{"a digest that the spec does not allow", DurableIntent, "and the spec demands " + digest(green),
			pinnedTo(commit(hooks{"begin": hold(blue)}), digest(blue), demands)},
		{"a digest of a Secret's content without a key", DurableIntent, "never held content with that digest before",
			pinnedTo(commit(hooks{"begin": withSecret}), digest(blue), api.ContentSource{SecretKeyRef: &api.ContentKey{Name: "source", Key: "key"}})},
		{"a source that is not missing", Phases, "says (@114) that a source is missing, and none was",
			pinnedTo(commit(hooks{"begin": hold(blue), "intent": says("ContentMissing")}), digest(blue), fromMap())},
		{"a source that has not changed", Phases, "says (@114) that a source has changed, and none has",
			pinnedTo(commit(hooks{"begin": hold(blue), "intent": says("ContentChanged")}), digest(blue), fromMap())},
		{"a source that was read as Janus itself", Identity, "GET configmaps/source#0 reads a source as Janus itself",
			pinnedTo(commit(hooks{"begin": hold(blue), "after": func(w *world) {
				w.request(faultinject.Call{Method: "GET"}, sourceMap, nil, nil)
			}}), digest(blue), fromMap())},
	} {
		t.Run(c.what, func(t *testing.T) { expect(t, c.told.breaches(), c.guarantee, c.message) })
	}
}

func TestWhatIsSoOfSourcesIsNoBreach(t *testing.T) {
	gone := func(w *world) { w.foreignDelete(sourceMap) }
	for what, told := range map[string]*world{
		"content of a source":                    pinnedTo(commit(hooks{"begin": hold(blue)}), digest(blue), fromMap()),
		"a source that others change and delete": pinnedTo(commit(hooks{"begin": hold(blue), "prepared": hold(green), "do0": gone}), digest(blue), fromMap()),
		"a source that has changed":              pinnedTo(rollBack(hooks{"begin": hold(blue), "images": hold(green), "turn": says("ContentChanged")}), digest(blue), fromMap()),
		"a source that is missing":               pinnedTo(commit(hooks{"begin": hold(blue), "images": gone, "intent": says("ContentMissing")}), digest(blue), fromMap()),
		"a source that was replaced":             pinnedTo(commit(hooks{"begin": hold(blue), "images": gone, "prepared": hold(blue), "intent": says("ContentMissing")}), digest(blue), fromMap()),
		"a source that was denied": pinnedTo(commit(hooks{"begin": hold(blue), "images": func(w *world) {
			w.request(faultinject.Call{Method: "GET", User: account}, sourceMap, nil, nil).Fault = faultinject.FalseNotFound
		}, "intent": says("ContentMissing")}), digest(blue), fromMap()),
	} {
		t.Run(what, func(t *testing.T) {
			if found := told.breaches(); len(found) > 0 {
				t.Error(lines(found))
			}
		})
	}
}

func TestADigestIsThatOfThePlanThatStands(t *testing.T) {
	recorded := func(digest string, of approval) *state { return &state{items: []item{{content: digest}}, approval: of} }
	first, second := approval{plans: 1, digest: "one"}, approval{plans: 2, digest: "two"}
	for what, c := range map[string]struct {
		states []*state
		want   string
	}{
		"no plan is shown":              {[]*state{recorded("", approval{}), recorded("a", approval{})}, "a"},
		"it stands":                     {[]*state{recorded("a", first), recorded("a", first)}, "a"},
		"it was given up":               {[]*state{recorded("a", first), recorded("a", approval{plans: 1})}, ""},
		"the next one is refused":       {[]*state{recorded("a", first), recorded("a", approval{plans: 1}), recorded("", approval{plans: 1})}, ""},
		"the next one stands":           {[]*state{recorded("a", first), recorded("a", approval{plans: 1}), recorded("b", second)}, "b"},
		"the next one has no digest":    {[]*state{recorded("a", first), recorded("a", approval{plans: 1}), recorded("", second)}, ""},
		"another takes its place":       {[]*state{recorded("a", first), recorded("b", second)}, "b"},
		"another, while this one stood": {[]*state{recorded("a", first), recorded("b", first)}, "a"},
	} {
		t.Run(what, func(t *testing.T) {
			digest, by := (&run{states: c.states}).pin(0)
			assert.Equal(t, c.want, digest)
			assert.Equal(t, c.want != "", by != nil)
		})
	}
}
