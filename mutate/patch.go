package mutate

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/snapshot"
)

// patchStrategy sets fields by server-side apply. It takes them from whoever owns
// them: changing a field that somebody's apply has set is what a Patch is for.
// Its uid and resourceVersion in the body keep the apply from creating a target
// that has vanished.
type patchStrategy struct{}

func (patchStrategy) Admit(c Change, before *unstructured.Unstructured) error {
	return c.admitExisting(before, "patch")
}

func (patchStrategy) Try(ctx context.Context, c Change, before Baseline) (*unstructured.Unstructured, error) {
	var after *unstructured.Unstructured
	err := c.write(ctx, before, "dry-run the patch of", func(meets Version) (err error) {
		after, err = c.apply(ctx, meets, true)
		return err
	})
	return after, err
}

func (patchStrategy) Do(ctx context.Context, c Change, before Baseline) error {
	return c.write(ctx, before, "patch", func(meets Version) error {
		_, err := c.apply(ctx, meets, false)
		return err
	})
}

func (c Change) apply(ctx context.Context, meets Version, dry bool) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(c.body(meets).Object)
	if err != nil {
		return nil, fmt.Errorf("encode the content: %w", err)
	}
	force := true
	return c.Resource.Patch(ctx, c.Ref.Name, types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: c.Manager, Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(dry),
	})
}

func (patchStrategy) Observe(ctx context.Context, c Change, record snapshot.Record) (Finding, error) {
	return c.observeWrite(ctx, record)
}

func (patchStrategy) Undo(ctx context.Context, c Change, record snapshot.Record) error {
	return c.restore(ctx, record)
}

func (patchStrategy) Verbs() (change, compensation []string) {
	return []string{"get", "patch"}, []string{"patch"}
}
