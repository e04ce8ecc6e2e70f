package ui

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
)

// remembering is what a test says that is remembered.
type remembering struct {
	revisions []Revision
	err       error
}

func (r remembering) Revisions(context.Context, string) ([]Revision, error) {
	return r.revisions, r.err
}

func (r remembering) Changes(*api.Transaction) Changes { return r }

func (r remembering) Of(_ context.Context, i int) (fields []api.FieldChange, note string, err error) {
	switch i {
	case 0:
		return []api.FieldChange{{Field: ".data.password", Before: "hunter2", After: "hunter3"}}, "", nil
	case 1:
		return []api.FieldChange{{Field: ".data.size", Before: "1", After: "2"}}, "", nil
	default:
		return nil, "", errors.New("the object does not exist")
	}
}

func remembered() *api.Transaction {
	t := full()
	t.Status.Phase, t.Status.RevisionDigest, t.Status.RollbackRef = api.PhaseCommitted, "sha256:1", &api.RollbackRef{Name: "full-rollback"}
	t.Status.Items = append(t.Status.Items, api.Item{Name: "lost"}, api.Item{Name: "unchanged", Unchanged: true}, api.Item{Name: "awaits"})
	for i := range 4 {
		t.Status.Items[i].Before = &api.BeforeImage{Key: "0"}
	}
	return t
}

func differencesOf(t *testing.T, h http.Handler, query string) (out []Changed) {
	t.Helper()
	answer := get(h, "GET", "/api/transactions/shop/full/differences"+query)
	require.Equal(t, http.StatusOK, answer.Code, answer.Body.String())
	assert.NotContains(t, answer.Body.String(), "hunter", "whatever the images say, nothing of a Secret is shown")
	require.NoError(t, json.Unmarshal(answer.Body.Bytes(), &out))
	return out
}

func TestWhatItemsHaveChangedIsShownAndMasked(t *testing.T) {
	g := &given{transactions: []*api.Transaction{remembered()}}
	h, err := Handler(g, Options{Past: remembering{}})
	require.NoError(t, err)
	want := []Changed{
		{Name: "key", Fields: []Difference{{Field: ".data.password", Before: masked, After: masked}}},
		{Name: "map", Fields: []Difference{{Field: ".data.size", Before: "1", After: "2"}}},
		{Name: "lost", Fields: []Difference{}, Unread: "the object does not exist"},
		{Name: "unchanged", Fields: []Difference{}, Note: "nothing was written: it was so already"},
		{Name: "awaits", Fields: []Difference{}, Note: "it has no before-image"},
	}
	assert.Equal(t, want, differencesOf(t, h, ""))
	assert.Equal(t, want[1:2], differencesOf(t, h, "?item=1"))
	for _, none := range []string{"full/differences?item=5", "full/differences?item=-1", "full/differences?item=x", "none/differences"} {
		assert.Equal(t, http.StatusNotFound, get(h, "GET", "/api/transactions/shop/"+none).Code, none)
	}
	g.transactions[0].Status.Items[1].Confidential = true
	assert.Equal(t, masked, differencesOf(t, h, "?item=1")[0].Fields[0].After)
	g.transactions[0].Status.RollbackRef = nil
	assert.Equal(t, http.StatusNotFound, get(h, "GET", "/api/transactions/shop/full/differences").Code)
}

// janusd shows no content: it names the command by which those see it who may.
func TestWhereNothingIsShownOfThePastTheCommandIs(t *testing.T) {
	h := serve(t, &given{transactions: []*api.Transaction{remembered()}})
	answer := get(h, "GET", "/api/transactions/shop/full/differences")
	assert.Equal(t, http.StatusNotFound, answer.Code)
	assert.Contains(t, answer.Body.String(), "kubectl janus history full -n shop")
	var d Detail
	require.NoError(t, json.Unmarshal(get(h, "GET", "/api/transactions/shop/full").Body.Bytes(), &d))
	assert.False(t, d.Differences)
}

func TestWhatANamespaceRemembersIsListed(t *testing.T) {
	g := &given{transactions: []*api.Transaction{remembered()}}
	history := remembering{revisions: []Revision{{Number: 3, Transaction: "full", UID: "uid-full"}, {Number: 7, Transaction: "next", Unchanged: true}}}
	detail := func(history remembering) (d Detail) {
		h, err := Handler(g, Options{History: history, Past: history})
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(get(h, "GET", "/api/transactions/shop/full").Body.Bytes(), &d))
		return d
	}
	d := detail(history)
	assert.True(t, d.Differences)
	assert.Equal(t, []Revision{
		{Number: 7, Transaction: "next", Unchanged: true},
		{Number: 3, Transaction: "full", UID: "uid-full", BackTo: "kubectl janus undo --to-revision 3 -n shop"},
	}, d.Remembered)

	assert.Equal(t, []Revision{}, detail(remembering{}).Remembered, "none is a list, too")
	d = detail(remembering{err: errors.New("forbidden")})
	assert.Equal(t, []string{"revisions of namespace shop: forbidden"}, d.Unread)
	g.transactions[0].Status.Phase = api.PhaseCommitting
	assert.Empty(t, detail(history).Remembered, "they are read once it has ended")
}
