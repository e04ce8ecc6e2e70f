package wiring

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/objectid"
)

func objectOf(bytes int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"data": strings.Repeat("x", bytes)}}
}

func TestWhatWasWrittenIsKeptUntilItIsTakenOrForgotten(t *testing.T) {
	a, b := objectid.ID{Resource: "configmaps", Name: "a"}, objectid.ID{Resource: "configmaps", Name: "b"}
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
	assert.Empty(t, w.sizes)
}

// A Transaction that another process goes on with has no room in what is kept, nor content.
func TestWhatIsKnownOfATransactionIsForgotten(t *testing.T) {
	key := objectid.ID{Resource: "secrets", Name: "a"}
	clock := clocktesting.NewFakeClock(time.Unix(1, 0))
	p := &Planner{shared: &shared{sources: newSources(nil, clock, 1), images: newImages(), written: newWritten(), patience: newPatience(clock)}, tried: newDryRunCache(clock)}
	for _, uid := range []types.UID{"t", "u"} {
		p.images.readers[uid] = imagesOf{objects: 1}
		p.tried.keep(newTries(uid, "account"))
		p.written.put(uid, key, objectOf(10))
		assert.False(t, p.patience.over(uid, 0))
	}
	size := p.written.size
	p.Forget(&api.Transaction{ObjectMeta: metav1.ObjectMeta{UID: "t"}})
	assert.NotContains(t, p.images.readers, types.UID("t"))
	assert.Nil(t, p.tried.of("t", "account"))
	assert.Nil(t, p.written.get("t", key))
	assert.Equal(t, size/2, p.written.size)
	assert.NotContains(t, p.patience.since, types.UID("t"))
	assert.Contains(t, p.patience.since, types.UID("u"))
	assert.Contains(t, p.images.readers, types.UID("u"))
	assert.NotNil(t, p.tried.of("u", "account"))
	assert.NotNil(t, p.written.get("u", key))
}

func TestNoMoreIsKeptOfWhatWasWrittenThanThereIsRoomFor(t *testing.T) {
	a, b := objectid.ID{Name: "a"}, objectid.ID{Name: "b"}
	w := newWritten()
	w.put("t", a, objectOf(maxWritten-1000))
	w.put("t", b, objectOf(2000))
	assert.NotNil(t, w.get("t", a))
	assert.Nil(t, w.get("t", b), "it is read when it is needed")
	w.put("t", a, objectOf(2*maxWritten))
	assert.Nil(t, w.get("t", a), "that it was is not what it is now")
	assert.Greater(t, w.bytes("t", a), int64(2*maxWritten), "how large it is stays known")
	assert.Equal(t, int64(unread), w.bytes("u", a))
	w.put("t", b, objectOf(2000))
	assert.NotNil(t, w.get("t", b))
}
