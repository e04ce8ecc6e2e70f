package snapshot

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// FuzzStored: whatever becomes of the objects with before-images, a record is loaded
// only if it is what the digest says, and else the error says which object it is,
// that it will not heal, and nothing of the content.
func FuzzStored(f *testing.F) {
	good := encode(f, record(0, 40))
	other := encode(f, secretRecord(1, 9))
	f.Add(good, other, []byte{}, []byte{})
	f.Add(good, other, []byte{3, 50, 90}, []byte{})
	for op := range len(tamperings) {
		f.Add(good, other, []byte{40, 80}, []byte{byte(op), 0, 1})
		f.Add(good, other, []byte{40, 80}, []byte{byte(op), 1, 7, byte(op), 3, 200})
		f.Add(good, good, []byte{}, []byte{byte(op), 0, 0})
	}
	f.Add([]byte(``), other, []byte{0}, []byte{})
	f.Add([]byte(canary), []byte(canary+canary), []byte{1, 1, 1}, []byte{5, 0, 0})
	f.Fuzz(func(t *testing.T, a, b, cuts, acts []byte) {
		s := storedRecords(string(a), string(b), cuts)
		for i := 0; i+2 < len(acts) && i < 30; i += 3 {
			tamperings[int(acts[i])%len(tamperings)](s, int(acts[i+1]), int(acts[i+2]))
		}
		reader := s.reader()
		for n, image := range s.images {
			s.check(t, reader, n, image, len(acts) < 3)
		}
	})
}

// storage is the objects of a Transaction, and what its status says of them.
type storage struct {
	objects map[place]map[string]string
	listed  []place
	images  []v1alpha1.BeforeImage
	texts   []string
}

// storedRecords puts records into objects, cut in parts.
func storedRecords(a, b string, cuts []byte) *storage {
	s := &storage{objects: map[place]map[string]string{}, texts: []string{a, b}}
	for n, text := range s.texts {
		k := kinds[n]
		key := numbered(fmt.Sprintf("%d_%s_shop_target-%d", n, k, n), n+1)
		s.images = append(s.images, v1alpha1.BeforeImage{Key: key, Digest: Digest([]byte(text))})
		number, part := n+1, 1
		for _, cut := range cuts {
			at := min(int(cut), len(text))
			s.put(place{k, number}, partKey(key, part), text[:at])
			text = text[at:]
			number, part = number+1, part+1
		}
		s.put(place{k, number}, partKey(key, part), text)
	}
	return s
}

func (s *storage) put(p place, key, value string) {
	if s.objects[p] == nil {
		s.objects[p] = map[string]string{}
		s.listed = append(s.listed, p)
	}
	s.objects[p][key] = value
}

// reader has read the objects as they are now.
func (s *storage) reader() *Reader {
	const transaction = "release"
	var ref v1alpha1.RollbackRef
	for _, p := range s.listed {
		ref.Objects = append(ref.Objects, p.entry(transaction))
	}
	r := (&Store{}).Open(Owner{Namespace: "shop", Name: transaction}, ref)
	for _, p := range s.listed {
		r.cache[p].read, r.cache[p].data = true, s.objects[p]
	}
	return r
}

func (s *storage) check(t *testing.T, r *Reader, n int, image v1alpha1.BeforeImage, untouched bool) {
	t.Helper()
	got, err := r.Load(t.Context(), image)
	if err != nil {
		if reason := errclass.ReasonOf(err); errclass.ClassOf(err) != errclass.Terminal || reason != errclass.BeforeImageLost && reason != errclass.BeforeImageTampered {
			t.Fatalf("%s %s: %v", errclass.ClassOf(err), reason, err)
		}
		if message := err.Error(); strings.Contains(message, canary) || !strings.Contains(message, "shop/release-rollback") {
			t.Fatalf("the error says %q", message)
		}
		if _, wrong := Decode([]byte(s.texts[n])); untouched && wrong == nil {
			t.Fatalf("record %d is as it was saved: %v", n, err)
		}
		return
	}
	for _, text := range s.texts {
		if Digest([]byte(text)) == image.Digest {
			if want := decode(t, []byte(text)); string(encode(t, got)) != string(encode(t, want)) {
				t.Fatalf("record %d is %s, want %s", n, encode(t, got), encode(t, want))
			}
			return
		}
	}
	t.Fatalf("record %d, with the digest of nothing that was saved: %s", n, encode(t, got))
}

// at returns an object and one of its keys.
func (s *storage) at(n int) (p place, key string, ok bool) {
	if len(s.listed) == 0 {
		return p, "", false
	}
	p = s.listed[n%len(s.listed)]
	keys := slices.Sorted(maps.Keys(s.objects[p]))
	if len(keys) == 0 {
		return p, "", false
	}
	return p, keys[n%len(keys)], true
}

// onValue changes a value.
func onValue(change func(text string, arg int) string) func(*storage, int, int) {
	return func(s *storage, n, arg int) {
		if p, key, ok := s.at(n); ok {
			s.objects[p][key] = change(s.objects[p][key], arg)
		}
	}
}

// onTwo changes the value of one key with regard to another.
func onTwo(change func(s *storage, p place, key string, q place, other string)) func(*storage, int, int) {
	return func(s *storage, n, arg int) {
		p, key, ok := s.at(n)
		q, other, also := s.at(arg)
		if ok && also {
			change(s, p, key, q, other)
		}
	}
}

// tamperings are what a user may do who can edit the objects or the status.
var tamperings = []func(s *storage, n, arg int){
	onValue(func(text string, arg int) string { return text[:min(arg, len(text))] }),
	onValue(func(text string, arg int) string { return text + strings.Repeat(" ", arg%3) + "{}" }),
	onValue(func(text string, arg int) string {
		at := min(arg, len(text))
		return text[:at] + "\xff" + text[min(at+1, len(text)):]
	}),
	onTwo(func(s *storage, p place, key string, q place, other string) {
		s.objects[p][key], s.objects[q][other] = s.objects[q][other], s.objects[p][key]
	}),
	onTwo(func(s *storage, p place, key string, q place, other string) { s.objects[p][key] = s.objects[q][other] }),
	onTwo(func(s *storage, p place, key string, q place, other string) { s.objects[p][key] += s.objects[q][other] }),
	onTwo(func(s *storage, p place, key string, q place, _ string) { s.put(q, key, s.objects[p][key]) }),
	func(s *storage, n, _ int) {
		if p, key, ok := s.at(n); ok {
			delete(s.objects[p], key)
		}
	},
	func(s *storage, n, _ int) { // The object is gone.
		if p, _, ok := s.at(n); ok {
			s.objects[p] = nil
		}
	},
	func(s *storage, n, _ int) { // The status does not list it.
		if len(s.listed) > 0 {
			s.listed = slices.Delete(s.listed, n%len(s.listed), n%len(s.listed)+1)
		}
	},
	func(s *storage, n, arg int) { s.images[n%2].Digest = s.images[arg%2].Digest },
	func(s *storage, n, arg int) {
		s.images[n%2].Digest = s.images[n%2].Digest[:arg%(len(s.images[n%2].Digest)+1)]
	},
	func(s *storage, n, arg int) { s.images[n%2].Key = s.images[arg%2].Key },
	func(s *storage, n, arg int) { s.images[n%2].Key = strings.Repeat(".o9", arg) },
	func(s *storage, n, _ int) { // It has moved to an object of the other kind.
		if p, _, ok := s.at(n); ok {
			to := place{kinds[0], p.number}
			if p.kind == kinds[0] {
				to.kind = kinds[1]
			}
			for key, value := range s.objects[p] {
				s.put(to, key, value)
			}
			s.objects[p] = map[string]string{}
		}
	},
}

// FuzzOwner: an object with any metadata is taken for ours only if a Transaction of
// our uid controls it.
func FuzzOwner(f *testing.F) {
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"apiVersion":"backup.janus.io/v1alpha1","kind":"Transaction","name":"release","uid":"u","controller":true}]},"data":{"a":"b"}}`), "u")
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"apiVersion":"x/y/z","kind":"Transaction","uid":"u","controller":true}],"annotations":{"janus.io/rollback-batch":"99999"}}}`), "u")
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"kind":"Transaction","uid":"u"}]},"immutable":true}`), "")
	f.Add([]byte(`{"metadata":{"ownerReferences":[{"apiVersion":"backup.janus.io/v2","kind":"Transaction","uid":"","controller":true}]}}`), "")
	f.Fuzz(func(t *testing.T, data []byte, uid string) {
		var cm corev1.ConfigMap
		if json.Unmarshal(data, &cm) != nil {
			return
		}
		there := object{cm.ObjectMeta, cm.Data, cm.Immutable != nil && *cm.Immutable}
		owner := Owner{Namespace: "shop", Name: "release", UID: types.UID(uid)}
		ref, controlled := transactionOf(cm.ObjectMeta)
		if ownedBy(cm.ObjectMeta, owner) != (controlled && string(ref.UID) == uid) {
			t.Fatalf("owned by %q: %v", uid, cm.ObjectMeta)
		}
		b := layout(configMaps, 1, []stored{{"0_a__b", "{}"}})
		if equal(there, b, b.chunks[0]) && (!there.immutable || len(there.data) != 1 || there.data["0_a__b"] != "{}") {
			t.Fatalf("%v is taken for what was to be written", there)
		}
		if last := lastOf(cm.Annotations[annotationBatch], 5); last < 5 || last > maxObjects {
			t.Fatalf("the last object is %d", last)
		}
	})
}
