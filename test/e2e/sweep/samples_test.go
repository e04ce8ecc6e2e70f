package sweep

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"janus.io/janus/fieldmerge"
)

type content = map[string]any

// sample is a kind of which changes are tried.
type sample struct {
	// Name is that of the kind, if it does not say enough.
	Name string
	Body content `json:"object"`
	// Needs is made before the object.
	Needs []content
	// Status is written to the status of the object.
	Status content
	// Update is merged into the object for an Update; without, the kind has nothing that
	// an Update may change, but labels.
	Update  content
	Patches []content
	// Without says why no change of the kind is tried.
	Without string
}

// samples reads testdata, and gives names to what is in it.
func samples(t *testing.T, names *strings.Replacer) []sample {
	t.Helper()
	files, err := filepath.Glob("testdata/*.yaml")
	require.NoError(t, err)
	var out []sample
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		var some []sample
		require.NoError(t, yaml.UnmarshalStrict([]byte(names.Replace(string(text))), &some), file)
		out = append(out, some...)
	}
	return out
}

func (s sample) obj() *unstructured.Unstructured { return &unstructured.Unstructured{Object: s.Body} }

// title is what the sample is called in the table.
func (s sample) title() string {
	if s.Name != "" {
		return s.Name
	}
	kind := s.obj().GroupVersionKind()
	if kind.Group == "" || kind.Kind != "Event" {
		return kind.Kind
	}
	return kind.Kind + "." + kind.Group
}

// namesFor returns the names in samples for a test that has a namespace.
func namesFor(t *testing.T, namespace string, c *converter) *strings.Replacer {
	t.Helper()
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace))
	return strings.NewReplacer("$X", "x"+strings.ReplaceAll(namespace, "-", ""), "$N", namespace, "$O", fmt.Sprint(hash.Sum32()%250),
		"$REQUEST", certificateRequest(t), "$CONVERT", c.url, "$CA", c.authority)
}

// certificateRequest is what a CertificateSigningRequest holds.
func certificateRequest(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "a"}}, key)
	require.NoError(t, err)
	return base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}))
}

// step is one change of a sample.
type step struct {
	name, change string
	// version is that of the kind by which the change is made.
	version string
	content content
	// edit is merged into what is there, which is the content then.
	edit content
}

// steps are the changes of an object that is there, its deletion last. An Update has the
// content that the object has, as that of a person who edits it.
func (s sample) steps() []step {
	version := s.obj().GetAPIVersion()
	out := []step{{name: "Update", change: "Update", version: version, edit: s.Update}}
	if s.Update == nil {
		out[0].edit = content{"metadata": content{"labels": content{"updated": "yes"}}}
	}
	patches := append([]content{
		{"metadata": content{"labels": content{"example.com/sweep": "yes"}}},
		{"metadata": content{"annotations": content{"example.com/sweep": "yes"}}},
	}, s.Patches...)
	for _, patch := range patches {
		by := version
		if other, ok := patch["apiVersion"].(string); ok {
			by = other
			patch = unset(patch, "apiVersion")
		}
		name := leaf(patch)
		if by != version {
			name += " by " + by[strings.LastIndex(by, "/")+1:]
		}
		out = append(out, step{name: name, change: "Patch", version: by, content: patch})
	}
	return append(out, step{name: "Delete", change: "Delete", version: version})
}

// spec is that of a Transaction with one change of an object that is there as live, and what
// it takes for it to be rolled back.
func (s step) spec(t *testing.T, obj, live *unstructured.Unstructured, rollback bool) string {
	t.Helper()
	change := content{"name": "it", "type": s.change, "target": content{"apiVersion": s.version, "kind": obj.GetKind(), "name": obj.GetName()}}
	switch {
	case s.edit != nil:
		body := merged(fieldmerge.Strip(live).Object, s.edit)
		body["metadata"] = unset(body["metadata"].(content), "name", "namespace")
		change["content"] = unset(body, "apiVersion", "kind")
	case s.content != nil:
		change["content"] = s.content
	}
	changes := []any{change}
	if rollback {
		changes = append(changes, content{
			"name": "never-ready", "type": "Create", "target": content{"apiVersion": "v1", "kind": "ConfigMap", "name": "never-ready"},
			"content": content{"data": content{"a": "b"}}, "readyWhen": content{"expression": "has(object.data.never)", "timeout": "1s"},
		})
	}
	out, err := json.Marshal(content{"changes": changes, "revisionHistoryLimit": 10})
	require.NoError(t, err)
	return string(out)
}

func unset(in content, keys ...string) content {
	out := maps.Clone(in)
	for _, key := range keys {
		delete(out, key)
	}
	return out
}

// merged merges objects, one over the other; lists are replaced.
func merged(into, over content) content {
	out := maps.Clone(into)
	for key, value := range over {
		below, isObject := value.(content)
		was, wasObject := out[key].(content)
		if isObject && wasObject {
			value = merged(was, below)
		}
		out[key] = value
	}
	return out
}

// leaf names the first field that content sets.
func leaf(v any) string {
	switch v := v.(type) {
	case content:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			// What a list of objects is keyed by, or what another field depends on, says less.
			if len(v) > 1 && slices.Contains([]string{"name", "type", "policyTypes"}, key) {
				continue
			}
			return strings.TrimSuffix(key+"."+leaf(v[key]), ".")
		}
	case []any:
		if len(v) > 0 {
			if below := leaf(v[len(v)-1]); below != "" {
				return "[]." + below
			}
		}
	}
	return ""
}
