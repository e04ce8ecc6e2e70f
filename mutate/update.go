package mutate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/outcome"
)

// updateStrategy replaces the target by the content.
type updateStrategy struct{}

func (updateStrategy) Admit(_ context.Context, c Change, before *unstructured.Unstructured) ([]string, error) {
	return nil, c.admitExisting(before, "update")
}

func (updateStrategy) Try(ctx context.Context, c Change, before Baseline) (*unstructured.Unstructured, error) {
	return write{Change: c, before: before, op: "dry-run the update of"}.send(ctx, func(c Change, meets Version) (*unstructured.Unstructured, error) {
		return c.put(ctx, meets, true)
	})
}

func (updateStrategy) Do(ctx context.Context, c Change, before Baseline) (Done, error) {
	if err := c.admitUndoNow(ctx, before); err != nil {
		return Done{}, err
	}
	return write{Change: c, before: before, op: "update", follows: c.Options.Inverts}.do(ctx, func(c Change, meets Version) (*unstructured.Unstructured, error) {
		return c.put(ctx, meets, false)
	})
}

func (c Change) put(ctx context.Context, meets Version, dry bool) (*unstructured.Unstructured, error) {
	return c.client().Update(ctx, c.body(meets), metav1.UpdateOptions{
		FieldManager: c.Names.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(dry),
	})
}

func (updateStrategy) Observe(ctx context.Context, c Change, e Effect) (outcome.Finding, error) {
	return c.observeWrite(ctx, e, false)
}

func (updateStrategy) Undo(ctx context.Context, c Change, e Effect) (outcome.Undone, error) {
	return c.restore(ctx, e)
}

func (updateStrategy) Verbs() (change, compensation []string) {
	return []string{"get", "update"}, []string{"patch"}
}
