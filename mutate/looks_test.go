package mutate_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

func assertSame(t *testing.T, before, now *unstructured.Unstructured) {
	t.Helper()
	if before == nil {
		assert.Nil(t, now, "it exists")
		return
	}
	if !assert.NotNil(t, now, "it is gone") {
		return
	}
	assert.Equal(t, settled(before).Object, settled(now).Object)
	assert.Equal(t, entries(before), entries(now), "field owners")
}

// settled is an object without what the server and its controllers set.
func settled(obj *unstructured.Unstructured) *unstructured.Unstructured {
	out := fieldmerge.Strip(obj)
	unstructured.RemoveNestedField(out.Object, "metadata", "annotations", "deployment.kubernetes.io/revision")
	if len(out.GetAnnotations()) == 0 {
		unstructured.RemoveNestedField(out.Object, "metadata", "annotations")
	}
	return out
}

// entry is an entry of managedFields that can be read.
type entry struct {
	Manager     string   `json:"manager"`
	Operation   string   `json:"operation"`
	APIVersion  string   `json:"apiVersion"`
	Subresource string   `json:"subresource,omitempty"`
	Time        string   `json:"time,omitempty"`
	Fields      []string `json:"fields"`
}

// entries returns managedFields without those of the status.
func entries(obj *unstructured.Unstructured) []entry {
	var out []entry
	for _, e := range obj.GetManagedFields() {
		if e.Subresource == "status" {
			continue
		}
		got := entry{Manager: e.Manager, Operation: string(e.Operation), APIVersion: e.APIVersion, Subresource: e.Subresource, Fields: fields(e)}
		if e.Time != nil {
			got.Time = e.Time.UTC().Format(time.RFC3339)
		}
		out = append(out, got)
	}
	return out
}

// managers lists who has an entry, as "manager operation" with the subresource.
func managers(obj *unstructured.Unstructured) []string {
	var out []string
	for _, e := range entries(obj) {
		out = append(out, strings.TrimSpace(e.Manager+" "+e.Operation+" "+e.Subresource))
	}
	return out
}

// owns tells whether a manager owns a field.
func owns(obj *unstructured.Unstructured, manager, path string) bool {
	for _, e := range entries(obj) {
		if e.Manager == manager && slices.Contains(e.Fields, path) {
			return true
		}
	}
	return false
}

func value(t *testing.T, obj *unstructured.Unstructured, path ...string) any {
	t.Helper()
	require.NotNil(t, obj, "it is gone")
	v, ok, err := unstructured.NestedFieldNoCopy(obj.Object, path...)
	require.NoError(t, err)
	if !ok {
		return "<absent>"
	}
	return v
}

// fails asserts class and reason of an error, and words in its text.
func fails(t *testing.T, err error, class errclass.Class, reason string, words ...string) {
	t.Helper()
	require.Error(t, err)
	assert.Equal(t, class.String(), errclass.ClassOf(err).String(), "class of: %v", err)
	assert.Equal(t, reason, errclass.ReasonOf(err), "reason of: %v", err)
	var own *errclass.Error
	require.ErrorAs(t, err, &own)
	for _, word := range words {
		assert.Contains(t, err.Error(), word)
	}
}

func (i *item) sent(want string) {
	i.t.Helper()
	assert.Equal(i.t, want, i.wire.requests(), "requests")
}

func quoted(text string) string {
	out, _ := json.Marshal(text)
	return string(out)
}
