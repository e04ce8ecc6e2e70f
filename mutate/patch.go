package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/fault"
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
	after, err := c.Resource.Patch(ctx, c.Ref.Name, types.ApplyPatchType, body, metav1.PatchOptions{
		FieldManager: c.Manager, Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(dry),
	})
	return after, invalidIfUnfit(err)
}

// unfit begins what the API server says of an apply whose content does not fit the
// kind. It says it with 500, although the same content never will.
var unfit = []string{"failed to create typed patch object", "failed to convert new object"}

// invalidIfUnfit makes of such an answer the 422 that it should be.
func invalidIfUnfit(err error) error {
	status, ok := fault.Status(err)
	if !ok || status.Code != http.StatusInternalServerError {
		return err
	}
	for _, beginning := range unfit {
		if strings.HasPrefix(status.Message, beginning) {
			status.Code, status.Reason = http.StatusUnprocessableEntity, metav1.StatusReasonInvalid
			return &apierrors.StatusError{ErrStatus: status}
		}
	}
	return err
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
