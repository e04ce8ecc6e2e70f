package snapshot

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

func TestSmallTransactionTakesOneCreate(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	records := []Record{record(0, 10), {Item: 1, Type: "Create", Target: refTo(configMapKind, "shop", "absent")}}
	saved := f.save(nil, records...)
	f.wantRequests("POST configmaps")
	want := v1alpha1.RollbackRef{Name: "release-rollback", Objects: []string{"ConfigMap/release-rollback"}}
	if fmt.Sprint(saved.Ref) != fmt.Sprint(want) {
		t.Errorf("ref %v, want %v", saved.Ref, want)
	}
	if saved.Images[0].Key != "0_ConfigMap_shop_target-0" || saved.Images[0].UID != "u-1" || saved.Images[0].ResourceVersion != "17" {
		t.Errorf("image %+v", saved.Images[0])
	}
	if absent := saved.Images[1]; absent.UID != "" || absent.ResourceVersion != "" || absent.Digest == "" {
		t.Errorf("image of what does not exist: %+v", absent)
	}
	f.wantLoad(saved.Ref, saved.Images, records)
	f.wantRequests("GET release-rollback")
}

func TestObjectIsImmutableOwnedHeldAndLabelled(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.save(nil, record(0, 1), secretRecord(1, 1))
	cm, secret := f.configMaps(t.Context())[0], f.secrets(t.Context())[0]
	if secret.Type != corev1.SecretTypeOpaque {
		t.Errorf("type %s", secret.Type)
	}
	if cm.Immutable == nil || !*cm.Immutable || secret.Immutable == nil || !*secret.Immutable {
		t.Error("not immutable")
	}
	for _, meta := range []metav1.ObjectMeta{cm.ObjectMeta, secret.ObjectMeta} {
		owner := metav1.GetControllerOf(&meta)
		if owner == nil || owner.UID != f.owner.UID || owner.APIVersion != "backup.janus.io/v1beta1" || owner.Kind != "Transaction" ||
			owner.Name != "release" || owner.BlockOwnerDeletion != nil {
			t.Errorf("owner %+v", owner)
		}
		if !slices.Equal(meta.Finalizers, []string{"backup.janus.io/before-image"}) {
			t.Errorf("finalizers %q", meta.Finalizers)
		}
		if meta.Labels["app.kubernetes.io/managed-by"] != "janus" || meta.Labels["janus.io/transaction"] != "release" ||
			meta.Annotations["janus.io/transaction"] != "release" {
			t.Errorf("labels %v annotations %v", meta.Labels, meta.Annotations)
		}
	}
}

func TestSensitiveRecordsAreInNoConfigMap(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	credential := secretRecord(2, 1)
	credential.Target = refTo(schema.GroupVersionKind{Group: "example.com", Version: "v7", Kind: "Credential"}, "shop", "target-2")
	plain := record(0, 1)
	plain.Before.Object["data"] = map[string]any{"a": "plain"}
	records := []Record{secretRecord(1, 1), plain, credential}
	saved := f.save(nil, records...)
	f.wantRequests("POST configmaps", "POST secrets")
	f.wantStored("ConfigMap/release-rollback", "Secret/release-rollback")
	everything, err := json.Marshal(f.configMaps(t.Context()))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(everything), canary) || !strings.Contains(string(everything), "plain") {
		t.Errorf("ConfigMaps: %s", everything)
	}
	f.wantLoad(saved.Ref, saved.Images, records)
	if got := f.wire.requests(); len(got) != 2 {
		t.Errorf("requests %q, want one for each object", got)
	}
}

func TestOnlySecretsMakeNoConfigMap(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil, secretRecord(0, 1))
	f.wantRequests("POST secrets")
	f.wantStored("Secret/release-rollback")
	if saved.Ref.Name != "release-rollback" {
		t.Errorf("name %s", saved.Ref.Name)
	}
	f.wantLoad(saved.Ref, saved.Images, []Record{secretRecord(0, 1)})
	f.wantRequests("GET release-rollback")
}

func TestSizeOfTargetsLimitsNothing(t *testing.T) {
	t.Parallel()
	many := func(n, size int, make func(int, int) Record) (out []Record) {
		for i := range n {
			out = append(out, make(i, size))
		}
		return out
	}
	cases := []struct {
		name    string
		records []Record
		objects int
	}{
		{"12 of 100 KB", many(12, 100_000, record), 2},
		{"12 Secrets of 100 KB", many(12, 100_000, secretRecord), 2},
		{"one of 1.4 MB", many(1, 1_400_000, record), 2},
		{"one Secret of 1.4 MB", many(1, 1_400_000, secretRecord), 2},
		{"100 of 60 KB", many(100, 60_000, record), 6},
		{"10 of 1.4 MB", many(10, 1_400_000, record), 20},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			f := setUp(t)
			saved := f.save(nil, c.records...)
			if got := f.wire.requests(); len(got) != c.objects || len(saved.Ref.Objects) != c.objects {
				t.Errorf("%d objects with the requests %q, want %d", len(saved.Ref.Objects), got, c.objects)
			}
			f.wantStored(saved.Ref.Objects...)
			f.wantLoad(saved.Ref, saved.Images, c.records)
			if got := f.wire.requests(); len(got) != c.objects {
				t.Errorf("%d requests to load %d objects: %q", len(got), c.objects, got)
			}
		})
	}
}

func TestOneRecordIsLoadedWithoutReadingTheOthers(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var records []Record
	for i := range 10 {
		records = append(records, record(i, 900_000))
	}
	saved := f.save(nil, records...)
	f.wire.requests()
	for _, i := range []int{9, 4, 0} {
		if _, err := f.store.Load(t.Context(), f.owner, saved.Ref, saved.Images[i]); err != nil {
			t.Fatal(err)
		}
		f.wantRequests("GET " + objectName("release", i+1))
	}
}

func TestServerTakesAFullObjectOfTheHardestContent(t *testing.T) {
	t.Parallel()
	// Each of these is escaped twice on the way, and must not exceed the limit of a
	// request.
	for _, character := range []string{`"`, `\`, "<", "\u2028", "\x01", "日"} {
		t.Run(fmt.Sprintf("%+q", character), func(t *testing.T) {
			f := setUp(t)
			r := record(0, 0)
			r.Before.Object["data"] = map[string]any{"a": strings.Repeat(character, 1_500_000/len(character))}
			saved := f.save(nil, r)
			f.wantLoad(saved.Ref, saved.Images, []Record{r})
		})
	}
}

func TestExactCapacityFitsOneObject(t *testing.T) {
	t.Parallel()
	for _, make := range []func(int, int) Record{record, secretRecord} {
		for extra, objects := range []int{1, 2} {
			f := setUp(t)
			size := capacity - f.encoded(make(0, 0))[0].Bytes()
			saved := f.save(nil, make(0, size+extra))
			if len(saved.Ref.Objects) != objects {
				t.Errorf("%d bytes too many: objects %q, want %d", extra, saved.Ref.Objects, objects)
			}
			f.wantLoad(saved.Ref, saved.Images, []Record{make(0, size+extra)})
		}
	}
}

func TestLateCaptureOnlyAdds(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first := f.save(nil, record(0, 10), secretRecord(1, 10))
	before := f.configMaps(t.Context())[0]
	f.wire.requests()
	second := f.save(&first.Ref, record(2, 1_400_000))
	f.wantRequests("POST configmaps", "POST configmaps")
	third := f.save(&second.Ref, secretRecord(3, 10))
	want := []string{"ConfigMap/release-rollback", "Secret/release-rollback",
		"ConfigMap/release-rollback-2", "ConfigMap/release-rollback-3", "Secret/release-rollback-2"}
	if !slices.Equal(third.Ref.Objects, want) {
		t.Errorf("objects %q, want %q", third.Ref.Objects, want)
	}
	f.wantStored(want...)
	if len(first.Ref.Objects) != 2 {
		t.Error("the ref of the caller was changed")
	}
	if after := f.configMaps(t.Context())[0]; after.ResourceVersion != before.ResourceVersion {
		t.Error("an object that existed was written")
	}
	images := slices.Concat(first.Images, second.Images, third.Images)
	f.wantLoad(third.Ref, images, []Record{record(0, 10), secretRecord(1, 10), record(2, 1_400_000), secretRecord(3, 10)})
}

func TestItemCapturedAgainHasTwoImages(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first := f.save(nil, record(0, 10))
	second := f.save(&first.Ref, record(0, 20))
	f.wantLoad(second.Ref, []v1alpha1.BeforeImage{first.Images[0], second.Images[0]}, []Record{record(0, 10), record(0, 20)})
}

func TestNothingToSaveIsNoRequest(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	saved := f.save(nil)
	f.wantRequests()
	if len(saved.Ref.Objects) != 0 || saved.Ref.Name != "release-rollback" {
		t.Errorf("ref %+v", saved.Ref)
	}
}

func TestOneItemTwiceIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, err := f.store.Save(t.Context(), f.owner, nil, f.encoded(record(0, 1), record(0, 2)))
	wantFault(t, err, errclass.Terminal, errclass.Invalid, "ConfigMap shop/target-0")
	f.wantRequests()
}

func TestLongNamesAndColonsAreStored(t *testing.T) {
	t.Parallel()
	name := strings.Repeat("a", 62) + "." + strings.Repeat("b", 190)
	f := setUpNamed(t, name)
	role := record(0, 10)
	role.Target = refTo(schema.GroupVersionKind{Group: "rbac.authorization.k8s.io", Version: "v1", Kind: "ClusterRole"}, "", "system:"+strings.Repeat("x", 246))
	other := role
	other.Item = 1
	records := []Record{role, other, record(2, 1_400_000), secretRecord(3, 1)}
	saved := f.save(nil, records...)
	f.wantLoad(saved.Ref, saved.Images, records)
	cm := f.configMaps(t.Context())[0]
	if len(cm.Labels["janus.io/transaction"]) > 63 || cm.Annotations["janus.io/transaction"] != name {
		t.Errorf("label %q annotation %q", cm.Labels["janus.io/transaction"], cm.Annotations["janus.io/transaction"])
	}
	if err := f.store.Drop(t.Context(), f.owner, saved.Ref); err != nil {
		t.Fatal(err)
	}
	f.wantStored()
}

func TestSecretIsAlwaysSensitive(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for gk, want := range map[schema.GroupKind]bool{
		{Kind: "Secret"}: true, {Group: "example.com", Kind: "Credential"}: true,
		{Kind: "ConfigMap"}: false, {Group: "other.com", Kind: "Credential"}: false,
	} {
		if got := f.store.Sensitive(gk); got != want {
			t.Errorf("%s: %t", gk, got)
		}
	}
}
