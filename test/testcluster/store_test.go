package testcluster

import (
	"net/http"
	"strings"
	"testing"
)

func TestStoredSinceTellsEveryVersionOfEveryObject(t *testing.T) {
	c, namespace := Shared(t), Namespace(t)
	before, err := c.StoreRevision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	path := createConfigMap(t, c, namespace, "stored")
	if err := c.call(t.Context(), http.MethodDelete, path, nil, nil); err != nil {
		t.Fatal(err)
	}

	stored, err := c.StoredSince(t.Context(), before)
	if err != nil {
		t.Fatal(err)
	}
	var versions []Stored
	for _, s := range stored {
		if s.Key == "/registry/configmaps/"+namespace+"/stored" {
			versions = append(versions, s)
		}
	}
	if len(versions) != 2 {
		t.Fatalf("%d versions were stored, want the creation and the deletion", len(versions))
	}
	if created := versions[0]; !strings.Contains(string(created.Value), "value") || created.Revision <= before {
		t.Errorf("the object is %q at revision %d, want its content after %d", created.Value, created.Revision, before)
	}
	if deleted := versions[1]; len(deleted.Value) != 0 {
		t.Errorf("the deletion has the value %q", deleted.Value)
	}
}

func TestStoredTellsWhatIsThere(t *testing.T) {
	c, namespace := Shared(t), Namespace(t)
	createConfigMap(t, c, namespace, "there")
	gone := createConfigMap(t, c, namespace, "gone")
	if err := c.call(t.Context(), http.MethodDelete, gone, nil, nil); err != nil {
		t.Fatal(err)
	}
	below := "/registry/configmaps/" + namespace + "/"
	stored, err := c.Stored(t.Context(), below)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, s := range stored {
		if strings.HasSuffix(s.Key, "/kube-root-ca.crt") { // A controller may have made it.
			continue
		}
		keys = append(keys, s.Key)
		if !strings.Contains(string(s.Value), "value") || s.Revision == 0 {
			t.Errorf("%s is %q at revision %d, want its content", s.Key, s.Value, s.Revision)
		}
	}
	if len(keys) != 1 || keys[0] != below+"there" {
		t.Errorf("%v are stored, want what is there", keys)
	}
}
