package snapshot

import (
	"context"
	"encoding/base64"
	"maps"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/internal/errclass"
)

// replace puts another object with other data in the place of a ConfigMap, as a
// user may who can edit ConfigMaps.
func (f *fixture) replace(name string, change func(data map[string]string)) {
	f.t.Helper()
	ctx := f.t.Context()
	configMaps := f.client.CoreV1().ConfigMaps(f.owner.Namespace)
	old, err := configMaps.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		f.t.Fatal(err)
	}
	f.remove(name)
	data := maps.Clone(old.Data)
	change(data)
	fresh := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: data}
	if _, err := configMaps.Create(ctx, fresh, metav1.CreateOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) remove(name string) {
	f.t.Helper()
	ctx := f.t.Context()
	configMaps := f.client.CoreV1().ConfigMaps(f.owner.Namespace)
	if _, err := configMaps.Patch(ctx, name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		f.t.Fatal(err)
	}
	if err := configMaps.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
		f.t.Fatal(err)
	}
}

func TestImageThatIsNotWhatWasSavedIsNotLoaded(t *testing.T) {
	t.Parallel()
	key, large := "0_ConfigMap_shop_target-0", "1_ConfigMap_shop_target-1.o2"
	cases := []struct {
		name   string
		item   int
		do     func(*fixture)
		reason string
		words  []string
	}{
		{"a changed byte", 0, func(f *fixture) {
			f.replace("release-rollback", func(d map[string]string) { d[key] = d[key][:20] + "!" + d[key][21:] })
		}, errclass.BeforeImageTampered, []string{"ConfigMap", "/release-rollback", key, "by hand"}},
		{"another record of ours", 0, func(f *fixture) {
			f.replace("release-rollback", func(d map[string]string) { d[key] = string(encode(f.t, record(0, 999))) })
		}, errclass.BeforeImageTampered, []string{key}},
		{"nonsense", 0, func(f *fixture) {
			f.replace("release-rollback", func(d map[string]string) { d[key] = canary })
		}, errclass.BeforeImageTampered, []string{key}},
		{"a trailing part", 0, func(f *fixture) {
			f.replace("release-rollback", func(d map[string]string) { d[key] += canary })
		}, errclass.BeforeImageTampered, []string{key}},
		{"a missing key", 0, func(f *fixture) {
			f.replace("release-rollback", func(d map[string]string) { delete(d, key) })
		}, errclass.BeforeImageLost, []string{key, "ConfigMap", "/release-rollback", "by hand"}},
		{"a missing object", 0, func(f *fixture) { f.remove("release-rollback") },
			errclass.BeforeImageLost, []string{"/release-rollback", key, "does not exist"}},
		{"a missing second object", 1, func(f *fixture) { f.remove("release-rollback-3") },
			errclass.BeforeImageLost, []string{"/release-rollback-3", large}},
		{"a missing second part", 1, func(f *fixture) {
			f.replace("release-rollback-3", func(d map[string]string) { delete(d, large+".2") })
		}, errclass.BeforeImageTampered, []string{large}},
		{"a changed second part", 1, func(f *fixture) {
			f.replace("release-rollback-3", func(d map[string]string) { d[large+".2"] = "x" + d[large+".2"] })
		}, errclass.BeforeImageTampered, []string{large}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := setUp(t)
			saved := f.save(nil, record(0, 10), record(1, 1_400_000))
			if saved.Images[0].Key != key || saved.Images[1].Key != large {
				t.Fatalf("images %+v", saved.Images)
			}
			c.do(f)
			_, err := f.store.Load(t.Context(), f.owner, saved.Ref, saved.Images[c.item])
			wantFault(t, err, errclass.Terminal, c.reason, c.words...)
		})
	}
}

func TestImageThatWasPutBackIsLoaded(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10))
	f.replace("release-rollback", func(map[string]string) {})
	f.wantLoad(saved.Ref, saved.Images, []Record{record(0, 10)})
}

func TestRecordOfAnUnknownFormatIsNotQuoted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10))
	text := `{"format":9,"item":"` + canary + `"}`
	f.replace("release-rollback", func(d map[string]string) { d[saved.Images[0].Key] = text })
	saved.Images[0].Digest = Digest([]byte(text))
	_, err := f.store.Load(t.Context(), f.owner, saved.Ref, saved.Images[0])
	wantFault(t, err, errclass.Terminal, errclass.BeforeImageTampered, saved.Images[0].Key)
}

func TestTamperedSecretIsNotQuoted(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, secretRecord(0, 10))
	ctx := t.Context()
	secrets := f.client.CoreV1().Secrets(f.owner.Namespace)
	if _, err := secrets.Patch(ctx, "release-rollback", "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := secrets.Delete(ctx, "release-rollback", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	forged := []byte(canary + base64.StdEncoding.EncodeToString([]byte(canary)))
	if _, err := secrets.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "release-rollback"},
		Data: map[string][]byte{saved.Images[0].Key: forged}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	_, err := f.store.Load(ctx, f.owner, saved.Ref, saved.Images[0])
	wantFault(t, err, errclass.Terminal, errclass.BeforeImageTampered, "Secret "+f.owner.Namespace+"/release-rollback")
}

func TestUnreachableServerIsNotALostImage(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := f.store.Load(ctx, f.owner, saved.Ref, saved.Images[0])
	wantFault(t, err, errclass.Unknown, errclass.ServerUnavailable)
}

func TestEmptyDigestMatchesNothing(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, record(0, 10))
	saved.Images[0].Digest = ""
	_, err := f.store.Load(t.Context(), f.owner, saved.Ref, saved.Images[0])
	wantFault(t, err, errclass.Terminal, errclass.BeforeImageTampered)
}

// A caller that shows a record must know whether it is confidential, and not by the kind alone.
func TestARecordSaysWhetherItWasInASecret(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	confidential := record(2, 1)
	confidential.Confidential = true
	saved := f.save(nil, record(0, 1), secretRecord(1, 1), confidential)
	for i, want := range []bool{false, true, true} {
		got, err := f.store.Load(t.Context(), f.owner, saved.Ref, saved.Images[i])
		if err != nil {
			t.Fatal(err)
		}
		if got.Confidential != want {
			t.Errorf("record %d: confidential is %t, want %t", i, got.Confidential, want)
		}
	}
}
