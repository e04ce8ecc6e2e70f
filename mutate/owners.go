package mutate

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

// patchOwners gives the fields back to the managers that owned them, but for those that
// have strayed, and returns the object as it is then; nil if there was nothing to give.
func (c Change) patchOwners(ctx context.Context, images fieldmerge.Images, strayed []fieldmerge.FieldConflict) (*unstructured.Unstructured, error) {
	entries, changed, err := images.RestoreOwners()
	if err == nil && len(strayed) > 0 {
		entries, err = images.Withhold(entries, strayed)
	}
	if err != nil {
		return nil, c.fail(errclass.Terminal, errclass.Invalid, "restore the field owners of", "they cannot be read: %w", err)
	}
	if !changed {
		return nil, nil
	}
	return c.setOwners(ctx, entries, images.Live)
}

// setOwners writes who owns the fields of an object, and returns it as it is stored. When
// nothing of it is the item's any more, the mark of its re-creation goes too.
func (c Change) setOwners(ctx context.Context, entries []metav1.ManagedFieldsEntry, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	var annotations map[string]any
	if c.Names.marked(live) && !slices.ContainsFunc(entries, func(e metav1.ManagedFieldsEntry) bool { return c.Names.ours(e.Manager) }) {
		annotations = map[string]any{MarkerAnnotation: nil}
	}
	body, err := ownersPatch(entries, annotations, live)
	if err != nil {
		return nil, err
	}
	stored, err := c.mergePatch(ctx, body)
	if err != nil || len(entries) == 0 || len(stored.GetManagedFields()) > 0 {
		return stored, err
	}
	return c.setOwners(ctx, ofVersionsOn(live, entries), stored)
}

// ownersPatch is the merge patch that sets who owns the fields of an object, and annotations.
func ownersPatch(entries []metav1.ManagedFieldsEntry, annotations map[string]any, meets *unstructured.Unstructured) ([]byte, error) {
	var list any = entries
	if len(entries) == 0 {
		// An empty list empties that of a built-in kind and means nothing to a custom one;
		// a list of one empty entry empties both.
		list = []any{map[string]any{}}
	}
	metadata := map[string]any{"managedFields": list}
	if annotations != nil {
		metadata["annotations"] = annotations
	}
	return conditional(map[string]any{"metadata": metadata}, meets)
}

// ofVersionsOn leaves out entries of versions that the API server may have ceased
// to serve: one of those makes it drop the whole list.
func ofVersionsOn(live *unstructured.Unstructured, entries []metav1.ManagedFieldsEntry) []metav1.ManagedFieldsEntry {
	served := map[string]bool{live.GetAPIVersion(): true}
	for _, e := range live.GetManagedFields() {
		served[e.APIVersion] = true
	}
	var out []metav1.ManagedFieldsEntry
	for _, e := range entries {
		if served[e.APIVersion] {
			out = append(out, e)
		}
	}
	if len(out) == len(entries) {
		return nil
	}
	return out
}

// ownerless says that the API server has stored an object without the owners of its fields:
// it drops all of them where a version that one has written cannot show the object.
func ownerless(stored, before *unstructured.Unstructured) []string {
	if stored == nil || len(stored.GetManagedFields()) > 0 || len(before.GetManagedFields()) == 0 {
		return nil
	}
	return []string{"the API server did not store who owned its fields, and nobody owns them now"}
}
