package adapter

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/target"
)

func objectOf(bytes int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"data": strings.Repeat("x", bytes)}}
}

func TestWhatWasWrittenIsKeptUntilItIsTakenOrForgotten(t *testing.T) {
	a, b := target.Key{Resource: "configmaps", Name: "a"}, target.Key{Resource: "configmaps", Name: "b"}
	w := newWritten()
	assert.Nil(t, w.get("t", a))
	w.put("t", a, objectOf(10))
	second := objectOf(20)
	w.put("t", a, second)
	w.put("t", b, objectOf(30))
	assert.Same(t, second, w.get("t", a), "what was written last counts")
	assert.Nil(t, w.get("u", a), "that is another Transaction")
	assert.Same(t, second, w.take("t", a))
	assert.Nil(t, w.take("t", a))
	w.forget("t")
	assert.Nil(t, w.get("t", b))
	assert.Zero(t, w.size)
}

func TestNoMoreIsKeptOfWhatWasWrittenThanThereIsRoomFor(t *testing.T) {
	a, b := target.Key{Name: "a"}, target.Key{Name: "b"}
	w := newWritten()
	w.put("t", a, objectOf(maxWritten-1000))
	w.put("t", b, objectOf(2000))
	assert.NotNil(t, w.get("t", a))
	assert.Nil(t, w.get("t", b), "it is read when it is needed")
	w.put("t", a, objectOf(2*maxWritten))
	assert.Nil(t, w.get("t", a), "that it was is not what it is now")
	w.put("t", b, objectOf(2000))
	assert.NotNil(t, w.get("t", b))
}
