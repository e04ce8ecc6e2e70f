package oracle

import (
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
)

// The oracle knows by itself what a writer of an object decides. Tests that compare two states
// of an object leave out what fieldmerge.Strip leaves out: if that were more, they would
// compare too little, and so would a rollback.
func TestWhatAWriterDecidesIsTheSameForTheOracleAndForJanus(t *testing.T) {
	t.Parallel()
	meta := map[string]any{}
	for field := range reflect.TypeFor[metav1.ObjectMeta]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		meta[name] = "set"
	}
	assert.Greater(t, len(meta), 10)
	obj := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Thing", "metadata": meta, "spec": "set", "status": "set", "data": "set",
	}}
	stripped := fieldmerge.Strip(obj).Object
	delete(stripped, "apiVersion")
	delete(stripped, "kind")
	assert.Equal(t, stripped, (&version{Version: &Version{Object: obj}}).content())
}
