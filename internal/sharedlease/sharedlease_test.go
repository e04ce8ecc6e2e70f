package sharedlease_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"janus.io/janus/internal/sharedlease"
)

var now = time.Date(2030, 1, 2, 3, 4, 5, 6000, time.UTC)

func entry(holder string, seconds int32) sharedlease.Entry {
	return sharedlease.Entry{
		Holder: holder, Seconds: seconds, Renewed: metav1.MicroTime{Time: now}, Over: "7",
		Owner: &metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: holder, UID: types.UID("uid-" + holder)},
	}
}

func TestWhatIsWrittenIsReadAgain(t *testing.T) {
	t.Parallel()
	next := entry("c", 60)
	said := sharedlease.Sharing{Next: &next}.With(entry("a", 30)).With(entry("b", 20))
	before := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"other": "kept"}}}
	lease := said.In(before, now)
	assert.Equal(t, map[string]string{"other": "kept"}, before.Annotations)
	assert.Equal(t, "kept", lease.Annotations["other"])
	assert.EqualValues(t, 60, *lease.Spec.LeaseDurationSeconds, "the longest of all")
	assert.Len(t, lease.OwnerReferences, 3)
	read, shared := sharedlease.Of(lease)
	require.True(t, shared)
	assert.Equal(t, []string{"a", "b"}, sharedlease.By(lease))
	assert.Equal(t, sharedlease.By(lease), sharedlease.Holders(lease))
	assert.Equal(t, "c", sharedlease.NextOf(lease))
	assert.Equal(t, lease, read.In(lease, now))

	read = read.With(entry("a", 10)).Without("b").Without("c")
	own, ok := read.Reader("a")
	require.True(t, ok)
	assert.Equal(t, 10*time.Second, own.Duration())
	lease = read.In(lease, now)
	assert.Equal(t, []string{"a"}, sharedlease.By(lease))
	assert.Empty(t, sharedlease.NextOf(lease))
	assert.NotContains(t, lease.Annotations, sharedlease.AnnotationNext)
	assert.True(t, read.Without("a").IsEmpty())
}

func TestOneThatCannotOwnTheLeaseLeavesItWithoutOwners(t *testing.T) {
	t.Parallel()
	stranger := entry("b", 20)
	stranger.Owner = nil
	assert.Empty(t, sharedlease.Sharing{}.With(entry("a", 30)).With(stranger).In(&coordinationv1.Lease{}, now).OwnerReferences)
}

func TestALeaseThatIsNotShared(t *testing.T) {
	t.Parallel()
	for holder, want := range map[string][]string{"": nil, "a": {"a"}, sharedlease.Holder: {sharedlease.Holder}} {
		lease := &coordinationv1.Lease{Spec: coordinationv1.LeaseSpec{HolderIdentity: ptr.To(holder)}}
		lease.Annotations = map[string]string{sharedlease.AnnotationReaders: "not a list", sharedlease.AnnotationNext: `{"holder":"x"}`}
		_, shared := sharedlease.Of(lease)
		assert.False(t, shared)
		assert.Equal(t, want, sharedlease.Holders(lease))
		assert.Empty(t, sharedlease.NextOf(lease))
	}
}
