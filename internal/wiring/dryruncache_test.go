package wiring

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"janus.io/janus/mutate"
)

// triedOn are the tries of a Transaction whose only target has that resourceVersion, and
// takes that many bytes.
func triedOn(txn types.UID, version string, bytes int) *tries {
	before := &unstructured.Unstructured{Object: map[string]any{}}
	before.SetUID("u")
	before.SetResourceVersion(version)
	after := &unstructured.Unstructured{Object: map[string]any{"data": strings.Repeat("x", bytes)}}
	t := newTries(txn, "account")
	t.add(0, seen{before: before, forecast: mutate.Forecast{After: after}}, int64(bytes))
	return t
}

func TestAForecastHoldsForTheTargetAsItWas(t *testing.T) {
	f := newDryRunCache(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	f.keep(triedOn("a", "7", 10))
	known := f.of("a", "account")
	for _, c := range []struct {
		item  int
		now   mutate.Version
		holds bool
	}{
		{0, mutate.Version{UID: "u", ResourceVersion: "7"}, true},
		{0, mutate.Version{UID: "u", ResourceVersion: "8"}, false},
		{0, mutate.Version{UID: "v", ResourceVersion: "7"}, false},
		{0, mutate.Version{}, false},
		{1, mutate.Version{}, false},
	} {
		_, holds := known.at(c.item, c.now)
		assert.Equal(t, c.holds, holds, "%+v", c)
	}
	absent := newTries("b", "account")
	absent.add(0, seen{}, 10)
	f.keep(absent)
	_, holds := f.of("b", "account").at(0, mutate.Version{})
	assert.True(t, holds, "of a target that did not exist, and does not")
	_, holds = (*tries)(nil).at(0, mutate.Version{})
	assert.False(t, holds, "of a Transaction that nothing is known of")
}

func TestAForecastHoldsForAServiceAccountAndAWhile(t *testing.T) {
	clock := clocktesting.NewFakePassiveClock(time.Unix(0, 0))
	f := newDryRunCache(clock)
	f.keep(triedOn("a", "7", 10))
	assert.NotNil(t, f.of("a", "account"))
	assert.Nil(t, f.of("a", "re-created"))
	assert.Nil(t, f.of("b", "account"))
	clock.SetTime(time.Unix(0, 0).Add(dryRunLife))
	assert.NotNil(t, f.of("a", "account"))
	clock.SetTime(time.Unix(0, 1).Add(dryRunLife))
	assert.Nil(t, f.of("a", "account"))

	f.keep(triedOn("b", "7", 10))
	assert.NotContains(t, f.kept, types.UID("a"), "what does not hold any more makes room")
	f.forget("b")
	assert.Nil(t, f.of("b", "account"))
	assert.Zero(t, f.size)
}

func TestForecastsTakeNoMoreThanTheirRoom(t *testing.T) {
	f := newDryRunCache(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	f.keep(triedOn("a", "7", maxDryRunBytes/2))
	f.keep(triedOn("a", "8", maxDryRunBytes/2))
	assert.NotNil(t, f.of("a", "account"), "it takes its own place")
	f.keep(triedOn("b", "7", maxDryRunBytes/2))
	assert.Nil(t, f.of("b", "account"))
	f.keep(triedOn("c", "7", 10))
	assert.NotNil(t, f.of("c", "account"))
	assert.LessOrEqual(t, f.size, maxDryRunBytes)
}

func TestForecastsOfALargeTransactionAreKeptAsFarAsTheyFit(t *testing.T) {
	f := newDryRunCache(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	large := newTries("a", "account")
	for i := range 10 {
		large.add(i, seen{forecast: mutate.Forecast{After: objectOf(maxDryRunBytes / 4)}}, int64(100*i))
	}
	f.keep(large)
	known := f.of("a", "account")
	assert.NotNil(t, known)
	_, first := known.at(0, mutate.Version{})
	_, last := known.at(9, mutate.Version{})
	assert.True(t, first)
	assert.False(t, last, "it is tried again")
	assert.LessOrEqual(t, f.size, maxDryRunBytes)
	assert.Equal(t, 450, known.average(), "of all")
	assert.Zero(t, (*tries)(nil).average())
}

func TestATargetIsKnownAsLongAsItIsWhatItWas(t *testing.T) {
	f := newDryRunCache(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	f.keep(triedOn("a", "7", 10))
	known := f.of("a", "account")
	before, ok := known.before(0, mutate.Version{UID: "u", ResourceVersion: "7"})
	require.True(t, ok)
	assert.Equal(t, "7", before.GetResourceVersion())
	before.SetResourceVersion("changed by who has it")
	_, ok = known.before(0, mutate.Version{UID: "u", ResourceVersion: "7"})
	assert.True(t, ok)
	for _, now := range []mutate.Version{{UID: "u", ResourceVersion: "8"}, {UID: "v", ResourceVersion: "7"}, {}} {
		_, ok = known.before(0, now)
		assert.False(t, ok, "%+v", now)
	}
	_, ok = known.before(1, mutate.Version{})
	assert.False(t, ok, "of which nothing is known")
	assert.True(t, known.has(0))
	assert.False(t, known.has(1))
	assert.False(t, (*tries)(nil).has(0))
}

func TestTargetsMakeRoomAndForecastsStay(t *testing.T) {
	f := newDryRunCache(clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	now := mutate.Version{UID: "u", ResourceVersion: "7"}
	for _, uid := range []types.UID{"a", "b"} {
		before := &unstructured.Unstructured{Object: map[string]any{"data": strings.Repeat("x", maxDryRunBytes*2/3)}}
		before.SetUID("u")
		before.SetResourceVersion("7")
		tries := newTries(uid, "account")
		tries.add(0, seen{before: before}, 1)
		f.keep(tries)
	}
	_, ok := f.of("a", "account").before(0, now)
	assert.True(t, ok)
	_, ok = f.of("b", "account").before(0, now)
	assert.False(t, ok, "there is room for one")
	_, ok = f.of("b", "account").at(0, now)
	assert.True(t, ok)
	f.forget("a")
	f.forget("b")
	assert.Zero(t, f.read)
}
