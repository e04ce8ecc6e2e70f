package mutate

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// patchStrategy sets fields by server-side apply. It takes them from anyone who owns
// them: changing a field that another client's apply has set is what a Patch is
// for. Its uid and resourceVersion in the body keep the apply from creating a
// target that has vanished.
type patchStrategy struct{}

func (patchStrategy) Admit(_ context.Context, c Change, before *unstructured.Unstructured) ([]string, error) {
	return nil, c.admitExisting(before, "patch")
}

func (patchStrategy) Try(ctx context.Context, c Change, before Baseline) (*unstructured.Unstructured, error) {
	return write{Change: c, before: before, op: "dry-run the patch of", applies: true}.send(ctx, func(c Change, meets Version) (*unstructured.Unstructured, error) {
		return c.apply(ctx, meets, true)
	})
}

func (patchStrategy) Do(ctx context.Context, c Change, before Baseline) (Done, error) {
	return write{Change: c, before: before, op: "patch", applies: true}.do(ctx, func(c Change, meets Version) (*unstructured.Unstructured, error) {
		return c.apply(ctx, meets, false)
	})
}

func (c Change) apply(ctx context.Context, meets Version, dry bool) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(c.body(meets).Object)
	if err != nil {
		return nil, fmt.Errorf("encode the content: %w", err)
	}
	send := func(force bool) (*unstructured.Unstructured, error) {
		return c.client().Patch(ctx, c.Ref.Name, types.ApplyPatchType, body, metav1.PatchOptions{
			FieldManager: c.Names.Manager, Force: &force, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(dry),
		})
	}
	if !c.Options.Unforced {
		return send(true)
	}
	after, err := send(false)
	if err == nil || !errclass.Is(err, errclass.FieldConflict) {
		return after, err
	}
	if others := c.contenders(err); len(others) > 0 {
		return nil, c.contended(others)
	}
	return send(true)
}

// contenders are the managers, and their fields, that an unforced apply met, but for
// those that belong to this Transaction or that earlier ones have left.
func (c Change) contenders(err error) []errclass.Field {
	status, _ := errclass.Status(err)
	if status.Details == nil {
		return nil
	}
	var out []errclass.Field
	for _, cause := range status.Details.Causes {
		manager := managerIn(cause.Message)
		if cause.Type != metav1.CauseTypeFieldManagerConflict || family(manager) {
			continue
		}
		out = append(out, errclass.Field{Path: c.path(cause.Field), Managers: []string{errclass.Printable(manager)}})
	}
	return out
}

// managerIn returns the manager that the API server names in the cause of a conflict:
// conflict with "kubectl" using apps/v1 at ...
func managerIn(message string) string {
	_, quoted, _ := strings.Cut(message, "conflict with ")
	prefix, err := strconv.QuotedPrefix(quoted)
	if err != nil {
		return message
	}
	manager, err := strconv.Unquote(prefix)
	if err != nil {
		return message
	}
	return manager
}

func (c Change) contended(fields []errclass.Field) error {
	err := c.fail(errclass.Conflict, errclass.FieldConflict, "patch", "others own fields that it sets, and force is false: %s", listed(fields)).
		WithHint("leave force out to take the fields, or agree with who writes them")
	err.Fields = fields
	return err
}

func (patchStrategy) Observe(ctx context.Context, c Change, e Effect) (outcome.Finding, error) {
	return c.observeWrite(ctx, e, true)
}

func (patchStrategy) Undo(ctx context.Context, c Change, e Effect) (outcome.Undone, error) {
	return c.restore(ctx, e)
}

func (patchStrategy) Verbs() (change, compensation []string) {
	return []string{"get", "patch"}, []string{"patch"}
}
