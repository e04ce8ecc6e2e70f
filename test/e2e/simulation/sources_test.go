package simulation

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

// sourceObject is an object that holds the contents of changes.
type sourceObject struct {
	thing
	// values are what its keys hold, and others is what another client writes there.
	values, others map[string][]byte
	// of is the Transaction for which kubectl janus run stores it; -1 for an object of a person.
	of int
	// absent is set if it is not there at first.
	absent bool
	// returns is set if it is there in the end, whatever becomes of it.
	returns bool
}

// TestContentsFromSources runs random Transactions as TestSeeds does, all of them with contents in
// Secrets and ConfigMaps, of which others change, delete and make some.
func TestContentsFromSources(t *testing.T) {
	t.Parallel()
	campaignOf(t, max(1, *seeds/5), func(seed uint64) script {
		p := drawn(seed)
		withSources(source(seed, 7), &p)
		p.actRate = max(p.actRate, 0.04)
		return p
	})
}

// withSources moves the contents of some changes of a plan into Secrets and ConfigMaps: several
// into one, some of them pinned by the spec, some of them stored as kubectl janus run does.
func withSources(random *rand.Rand, p *script) {
	s := &p.scenario
	stored := random.IntN(4) == 0
	move := &mover{random: random, scenario: s, stored: stored}
	move.hide()
	for n := range s.transactions {
		if s.transactions[n].UndoOf == nil {
			move.contents(n)
		}
	}
	if len(s.sources) > 0 && !stored && random.IntN(6) == 0 {
		move.target()
	}
	for _, source := range s.sources {
		if source.absent = source.of >= 0 || random.IntN(5) == 0; !source.absent {
			s.objects = append(s.objects, source.object(source.values))
		}
		source.returns = random.IntN(4) > 0
	}
	if len(s.sources) > 0 {
		p.acts = slices.Concat(acts, sourceActs)
	}
}

// mover moves contents out of the Transactions of a scenario.
type mover struct {
	random   *rand.Rand
	scenario *scenario
	stored   bool
	// secret is a target of which all contents come from a Secret, though it is none.
	secret *api.Target
}

// hidden is a value that only Secrets may hold, and the targets to which it comes from them.
const hidden = "hidden-9be2c4"

// hide chooses, in some scenarios, a target whose contents are all to come from a Secret.
func (m *mover) hide() {
	t := pool[m.random.IntN(3)].target()
	if m.random.IntN(2) == 0 {
		return
	}
	for _, spec := range m.scenario.transactions {
		for _, c := range spec.Changes {
			if c.Target == t && c.Content == nil {
				return // A Delete's or a release's before-image is that of an object as all others are.
			}
		}
	}
	m.secret = &t
}

// contents moves those of a Transaction.
func (m *mover) contents(n int) {
	changes := m.scenario.transactions[n].Changes
	var moved []int
	for i := range changes {
		if m.secret != nil && changes[i].Content != nil && changes[i].Target == *m.secret {
			changes[i].Content.Raw = bytes.ReplaceAll(changes[i].Content.Raw, []byte(`"new-`), []byte(`"`+hidden+`new-`))
			m.move(n, i, m.source(n, thing{secret, "source-0"}))
			continue
		}
		if changes[i].Content == nil || m.random.IntN(5) == 0 {
			continue
		}
		// The content of another change of this kind will do as well.
		if same := slices.IndexFunc(moved, func(j int) bool { return changes[j].Target.Kind == changes[i].Target.Kind }); same >= 0 && m.random.IntN(4) == 0 {
			changes[i].Content, changes[i].ContentFrom = nil, changes[moved[same]].ContentFrom.DeepCopy()
			continue
		}
		kind := configMap
		if changes[i].Target.Kind == secret.Kind || m.random.IntN(3) == 0 {
			kind = secret
		}
		m.move(n, i, m.source(n, thing{kind, fmt.Sprintf("source-%d", m.random.IntN(2))}))
		moved = append(moved, i)
	}
}

// source is the object that is to hold a content.
func (m *mover) source(n int, t thing) *sourceObject {
	of := -1
	if m.stored {
		number := 0
		if t.gvk == secret {
			number = 1
		}
		t.name, of = api.ContentObject(transactionName(n), number), n
	}
	for _, known := range m.scenario.sources {
		if known.thing == t {
			return known
		}
	}
	made := &sourceObject{thing: t, values: map[string][]byte{}, others: map[string][]byte{}, of: of}
	m.scenario.sources = append(m.scenario.sources, made)
	return made
}

func (m *mover) move(n, i int, to *sourceObject) {
	change := &m.scenario.transactions[n].Changes[i]
	key := fmt.Sprintf("%d.%d", n, i)
	content := change.Content.Raw
	to.values[key] = m.written(content)
	to.others[key] = m.written(bytes.ReplaceAll(content, []byte("new-"), []byte("two-")))
	if to.gvk == secret && change.Target.Kind == secret.Kind {
		to.others[key] = m.written([]byte(`{"data":{"a":"` + encode(canary+"other") + `"}}`))
	}
	from := &api.ContentSource{}
	if ref := (&api.ContentKey{Name: to.name, Key: key}); to.gvk == secret {
		from.SecretKeyRef = ref
	} else {
		from.ConfigMapKeyRef = ref
	}
	switch of := m.random.IntN(16); {
	case m.stored, of < 5:
		from.Digest = digestOf(to.values[key])
	case of == 5:
		from.Digest = digestOf(to.others[key])
	}
	change.Content, change.ContentFrom = nil, from
}

// written is a content in one of the ways in which it may be.
func (m *mover) written(content []byte) []byte {
	if m.random.IntN(3) == 0 {
		text, err := yaml.JSONToYAML(content)
		if err != nil {
			panic(err) // it was JSON
		}
		content = text
	}
	if m.stored || m.random.IntN(2) == 0 {
		return packed(content)
	}
	return content
}

// target has a change of one of the sources in one of the Transactions: before all others, which
// is refused if they need it, or after them.
func (m *mover) target() {
	of := m.scenario.sources[m.random.IntN(len(m.scenario.sources))]
	spec := &m.scenario.transactions[0]
	change := of.change(api.Patch, map[string]string{"a": "of-a-source"})
	if len(spec.Changes) > 0 && spec.Changes[0].Name != "" {
		change.Name = "source"
	}
	if m.random.IntN(3) == 0 {
		change.Type, change.Content = api.Delete, nil
	}
	if m.random.IntN(3) == 0 {
		spec.Changes = append([]api.Change{change}, spec.Changes...)
		return
	}
	if spec.Order == api.OrderGraph || slices.ContainsFunc(spec.Changes, func(c api.Change) bool { return len(c.DependsOn) > 0 }) {
		for _, c := range spec.Changes {
			change.DependsOn = append(change.DependsOn, c.Name)
		}
	}
	spec.Changes = append(spec.Changes, change)
}

// packed compresses a content, the same each time.
func packed(content []byte) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(content); err != nil {
		panic(err) // memory takes everything
	}
	if err := w.Close(); err != nil {
		panic(err)
	}
	return b.Bytes()
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

// object is the source with some values.
func (s *sourceObject) object(values map[string][]byte) *unstructured.Unstructured {
	plain, other := map[string]any{}, map[string]any{}
	for key, value := range values {
		switch {
		case s.gvk == secret:
			plain[key] = base64.StdEncoding.EncodeToString(value)
		case bytes.HasPrefix(value, []byte{0x1f, 0x8b}):
			other[key] = base64.StdEncoding.EncodeToString(value)
		default:
			plain[key] = string(value)
		}
	}
	obj := s.with(nil)
	obj.Object["data"] = plain
	if len(other) > 0 {
		obj.Object["binaryData"] = other
	}
	return obj
}

// sourceActs are what other clients do to sources. Each is there several times, to happen about as
// often as all other acts together.
var sourceActs = slices.Repeat([]act{
	{"touch source", onSource(func(a *actors, s *sourceObject) error {
		return a.annotate(s.with(nil), "somebody", a.fresh("note"), "new")
	})},
	{"change source", onSource(func(a *actors, s *sourceObject) error { return a.put(s, s.others, true) })},
	{"restore source", onSource(func(a *actors, s *sourceObject) error { return a.put(s, s.values, true) })},
	{"drop keys", onSource(func(a *actors, s *sourceObject) error {
		return a.merge(s.with(nil), "somebody", map[string]any{"data": nil, "binaryData": nil})
	})},
	{"delete source", onSource(func(a *actors, s *sourceObject) error { return a.remove(s.with(nil)) })},
	{"make source", onSource(func(a *actors, s *sourceObject) error { return a.put(s, s.values, false) })},
	{"make source", onSource(func(a *actors, s *sourceObject) error { return a.put(s, s.values, false) })},
	{"make another source", onSource(func(a *actors, s *sourceObject) error { return a.put(s, s.others, false) })},
	{"re-create source", onSource(func(a *actors, s *sourceObject) error {
		if err := a.remove(s.with(nil)); err != nil {
			return err
		}
		return a.put(s, s.values, false)
	})},
}, again)

// again is how often each of them is there.
const again = 3

// onSource does something to one of the sources.
func onSource(do func(a *actors, s *sourceObject) error) func(a *actors) error {
	return func(a *actors) error {
		all := a.world.plan.scenario.sources
		if len(all) == 0 {
			return nil
		}
		return do(a, all[a.world.random.IntN(len(all))])
	}
}

// put writes values into a source that is there, or else makes it.
func (a *actors) put(s *sourceObject, values map[string][]byte, there bool) error {
	obj := s.object(values)
	if there {
		patch := map[string]any{"data": map[string]any{}, "binaryData": map[string]any{}}
		for field, to := range patch {
			for key := range values {
				written, _ := obj.Object[field].(map[string]any)
				to.(map[string]any)[key] = written[key] // null where it is not
			}
		}
		if s.gvk == secret {
			delete(patch, "binaryData")
		}
		return a.merge(s.with(nil), "somebody", patch)
	}
	if s.of >= 0 {
		owner := a.world.transaction(transactionName(s.of))
		if owner == nil {
			return nil
		}
		obj.Object["immutable"] = true
		obj.SetLabels(map[string]string{api.ContentLabel: string(owner.GetUID())})
		obj.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: owner.GetAPIVersion(), Kind: owner.GetKind(), Name: owner.GetName(), UID: owner.GetUID()}})
	}
	_, err := a.of(obj).Create(context.Background(), obj, metav1.CreateOptions{FieldManager: "somebody"})
	return err
}

// bringBack has the sources back that are to be there in the end.
func (a *actors) bringBack() {
	for _, s := range a.world.plan.scenario.sources {
		if s.returns && a.put(s, s.values, false) != nil {
			_ = a.put(s, s.values, true)
		}
	}
}
