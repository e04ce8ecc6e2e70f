package revision

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/api/v1alpha1"
)

func example() Revision {
	return Revision{
		Format: format, Transaction: Owner{Name: "release", UID: "7f3a"}, ServiceAccount: "deployer",
		Images: v1alpha1.RollbackRef{Name: "release-rollback", Objects: []string{"ConfigMap/release-rollback"}},
		Items: []Item{
			{
				Name: "config", Type: v1alpha1.Patch, Target: v1alpha1.Target{APIVersion: "v1", Kind: "ConfigMap", Name: "a", Namespace: "shop"},
				Before: &v1alpha1.BeforeImage{Key: "0_ConfigMap_shop_a", Digest: "sha256:b", UID: "u"}, Set: "sha256:s",
			},
			{Index: 2, Name: "drop", Type: v1alpha1.Delete, Target: v1alpha1.Target{APIVersion: "v1", Kind: "ConfigMap", Name: "b", Namespace: "shop"}},
		},
	}
}

func TestARevisionIsReadAsItWasWritten(t *testing.T) {
	data, err := Encode(example())
	require.NoError(t, err)
	read, err := Decode(data)
	require.NoError(t, err)
	assert.Equal(t, example(), read)

	// The API server keeps what it says, and not how it is written.
	var loose map[string]any
	require.NoError(t, json.Unmarshal(data, &loose))
	again, err := json.MarshalIndent(loose, "", "  ")
	require.NoError(t, err)
	read, err = Decode(again)
	require.NoError(t, err)
	before, err := Digest(example())
	require.NoError(t, err)
	after, err := Digest(read)
	require.NoError(t, err)
	assert.Equal(t, before, after)
}

func TestWhatIsNoRevisionIsNotRead(t *testing.T) {
	for _, text := range []string{``, `null`, `[]`, `{}`, `{"format": 2, "transaction": {"uid": "u"}}`, `{"format": 1}`} {
		_, err := Decode([]byte(text))
		assert.ErrorIs(t, err, errNotARevision, text)
	}
}

// Two revisions are alike if they make the same changes, no matter who has made them, whatever
// was there before, and however it was written.
func TestRevisionsAreAlikeThatDoTheSame(t *testing.T) {
	alike := func(a, b Revision) bool {
		one, err := Changes(a)
		require.NoError(t, err)
		other, err := Changes(b)
		require.NoError(t, err)
		return one == other
	}
	same := example()
	same.Transaction, same.ServiceAccount, same.Images.Name = Owner{"other", "8a"}, "another", "other-rollback"
	same.Items[0].Name, same.Items[0].Before, same.Items[1].Index = "renamed", nil, 1
	assert.True(t, alike(example(), same))

	for name, edit := range map[string]func(*Revision){
		"another object":  func(r *Revision) { r.Items[0].Target.Name = "c" },
		"another type":    func(r *Revision) { r.Items[0].Type = v1alpha1.Update },
		"another content": func(r *Revision) { r.Items[0].Set = "sha256:t" },
		"another order":   func(r *Revision) { r.Items[0], r.Items[1] = r.Items[1], r.Items[0] },
		"less":            func(r *Revision) { r.Items = r.Items[:1] },
	} {
		other := example()
		edit(&other)
		assert.False(t, alike(example(), other), name)
	}

	var one, other map[string]any
	require.NoError(t, json.Unmarshal([]byte(`{"data": {"a": "1", "b": "2"}, "n": 1}`), &one))
	require.NoError(t, json.Unmarshal([]byte(`{ "n": 1, "data": {"b": "2", "a": "1"} }`), &other))
	a, err := SetBy(one)
	require.NoError(t, err)
	b, err := SetBy(other)
	require.NoError(t, err)
	assert.Equal(t, a, b)
}

func TestTheNumberIsInTheName(t *testing.T) {
	for _, number := range []int64{1, 10, 1 << 40} {
		assert.Equal(t, number, numberOf(Name(number)))
	}
	for _, name := range []string{"janus-revision-", "janus-revision-0", "janus-revision-01", "janus-revision--1", "janus-revision-1x", "revision-1", "1"} {
		assert.Zero(t, numberOf(name), name)
	}
}
