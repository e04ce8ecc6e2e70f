package mutate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/outcome"
	"janus.io/janus/snapshot"
)

// updateStrategy replaces the target by the content.
type updateStrategy struct{}

func (updateStrategy) Admit(_ context.Context, c Change, before *unstructured.Unstructured) ([]string, error) {
	return nil, c.admitExisting(before, "update")
}

func (updateStrategy) Try(ctx context.Context, c Change, before Baseline) (*unstructured.Unstructured, error) {
	var after *unstructured.Unstructured
	err := c.write(ctx, before, "dry-run the update of", func(meets Version) (err error) {
		after, err = c.put(ctx, meets, true)
		return err
	})
	return after, err
}

func (updateStrategy) Do(ctx context.Context, c Change, before Baseline) error {
	if done, err := c.idle(ctx, before); done || err != nil {
		return err
	}
	return c.write(ctx, before, "update", func(meets Version) error {
		after, err := c.put(ctx, meets, false)
		return c.wrote(ctx, after, err)
	})
}

func (c Change) put(ctx context.Context, meets Version, dry bool) (*unstructured.Unstructured, error) {
	return c.client().Update(ctx, c.body(meets), metav1.UpdateOptions{
		FieldManager: c.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(dry),
	})
}

func (updateStrategy) Observe(ctx context.Context, c Change, record snapshot.Record) (outcome.Finding, error) {
	return c.observeWrite(ctx, record)
}

func (updateStrategy) Undo(ctx context.Context, c Change, record snapshot.Record) (outcome.Undone, error) {
	return c.restore(ctx, record)
}

func (updateStrategy) Verbs() (change, compensation []string) {
	return []string{"get", "update"}, []string{"patch"}
}
