package ui

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// History is what a namespace remembers.
type History interface {
	// Revisions are those of a namespace.
	Revisions(ctx context.Context, namespace string) ([]Revision, error)
}

// Revision is a Transaction that is remembered.
type Revision struct {
	Number      int64     `json:"number"`
	Transaction string    `json:"transaction"`
	UID         types.UID `json:"uid"`
	// Unchanged is set if nothing was written.
	Unchanged bool `json:"unchanged"`
	// BackTo is the command that undoes all after it, if there is any.
	BackTo string `json:"backTo"`
}

// Past reads what changes have made of their targets.
type Past interface {
	// Changes opens the before-images of a Transaction.
	Changes(t *api.Transaction) Changes
}

// Changes are those of one Transaction.
type Changes interface {
	// Of lists the fields that an item has given another value, or notes why there are none.
	Of(ctx context.Context, item int) (fields []api.FieldChange, note string, err error)
}

// Changed is what an item has changed.
type Changed struct {
	Name   string       `json:"name"`
	Fields []Difference `json:"fields"`
	Note   string       `json:"note"`
	// Unread says why it cannot be told.
	Unread string `json:"unread"`
}

// revisions are those of the namespace of a Transaction that has ended, the newest first.
func (h *handler) revisions(ctx context.Context, t *api.Transaction) (found []Revision, unread []string) {
	namespace := t.Namespace
	if h.options.History == nil || !t.Status.Phase.Terminal() {
		return []Revision{}, nil
	}
	read, err := h.options.History.Revisions(ctx, namespace)
	if err != nil {
		return []Revision{}, []string{"revisions of namespace " + namespace + ": " + err.Error()}
	}
	found = append([]Revision{}, read...)
	slices.SortFunc(found, func(a, b Revision) int { return cmp.Compare(b.Number, a.Number) })
	for i := range found {
		if i > 0 {
			found[i].BackTo = backTo(namespace, found[i].Number)
		}
	}
	return found, nil
}

// imaged reports whether there are before-images that tell what an item has changed.
func imaged(t *api.Transaction) bool {
	return t.Status.RollbackRef != nil && slices.ContainsFunc(t.Status.Items, func(i api.Item) bool { return i.Before != nil })
}

// differences answers with what the items of a Transaction have changed, or with that of one, which
// is named by its position.
func (h *handler) differences(w http.ResponseWriter, r *http.Request) {
	t, err := h.reader.Transaction(r.Context(), r.PathValue("namespace"), r.PathValue("name"))
	switch {
	case err != nil:
		fail(w, err)
		return
	case h.options.Past == nil:
		refuse(w, http.StatusNotFound, "what a change has changed is not shown here: "+
			command("kubectl", "janus", "history", t.Name, "-n", t.Namespace))
		return
	case !imaged(t):
		refuse(w, http.StatusNotFound, "there are no before-images that tell it")
		return
	}
	which := indices(t.Status.Items)
	if text := r.FormValue("item"); text != "" {
		i, err := strconv.Atoi(text)
		if err != nil || i < 0 || i >= len(which) {
			refuse(w, http.StatusNotFound, "there is no such item")
			return
		}
		which = which[i : i+1]
	}
	changes, out := h.options.Past.Changes(t), []Changed{}
	for _, i := range which {
		out = append(out, changedBy(r.Context(), changes, t, i))
	}
	answer(w, out)
}

func changedBy(ctx context.Context, changes Changes, t *api.Transaction, i int) Changed {
	item := &t.Status.Items[i]
	out := Changed{Name: nameOf(t, i), Fields: []Difference{}}
	switch {
	case item.Unchanged:
		out.Note = "nothing was written: it was so already"
		return out
	case item.Before == nil:
		out.Note = "it has no before-image"
		return out
	}
	fields, note, err := changes.Of(ctx, i)
	if err != nil {
		out.Unread = errclass.Message(err)
		return out
	}
	out.Note = note
	for _, f := range fields {
		out.Fields = append(out.Fields, difference(isSecret(item), f.Field, f.Before, f.After, ""))
	}
	return out
}
