package mutate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/outcome"
)

// createStrategy makes an object that must not exist, and deletes it again if it
// is still its own.
type createStrategy struct{}

func (createStrategy) Admit(ctx context.Context, c Change, before *unstructured.Unstructured) ([]string, error) {
	if before == nil {
		return c.admitOverwriting(ctx)
	}
	if err := c.admitAlive(before, "create"); err != nil {
		return nil, err
	}
	return nil, c.exists("create")
}

func (c Change) exists(op string) error {
	return c.fail(errclass.Conflict, errclass.AlreadyExists, op, "it exists already").
		WithHint("use Patch or Update to change it; nothing of it was touched")
}

func (createStrategy) Try(ctx context.Context, c Change, _ Baseline) (*unstructured.Unstructured, error) {
	if c.Ref.Deferred {
		return nil, nil
	}
	if err := c.makeRoomAgain(ctx, true); err != nil {
		return nil, err
	}
	after, err := c.post(ctx, true)
	if errclass.Is(err, errclass.Terminating) {
		return nil, c.fail(errclass.Terminal, errclass.Terminating, "create", "namespace %s is being deleted", c.Ref.Namespace).
			WithHint("wait until it is gone and re-created, then create the Transaction again")
	}
	return after, c.wrap(err, "dry-run the creation of")
}

// makeRoomAgain does for an object that an undo creates again what a rollback does.
func (c Change) makeRoomAgain(ctx context.Context, dry bool) error {
	if !c.Options.Inverts {
		return nil
	}
	return c.makeRoom(ctx, c.body(Version{}), dry)
}

func (createStrategy) Do(ctx context.Context, c Change, _ Baseline) (Done, error) {
	if err := c.makeRoomAgain(ctx, false); err != nil {
		return Done{}, err
	}
	if err := c.Fences.mayCreate(ctx); err != nil {
		return Done{}, err
	}
	made, err := c.post(ctx, false)
	switch {
	case err == nil:
		done := c.done(ctx, made)
		done.Created = made.GetUID()
		return done, nil
	case errclass.Is(err, errclass.AlreadyExists):
		return c.whose(ctx)
	case c.Ref.Deferred && (errclass.Is(err, errclass.NotFound) || errclass.Is(err, errclass.NamespaceNotFound)):
		return Done{}, c.fail(errclass.Retryable, errclass.KindNotFound, "create", "the API server does not serve its kind or namespace yet")
	default:
		return Done{}, c.wrap(err, "create")
	}
}

// whose finds out whether the object that is there came from an earlier attempt.
func (c Change) whose(ctx context.Context) (Done, error) {
	live, err := Read(ctx, c)
	switch {
	case err != nil:
		return Done{}, err
	case live == nil:
		return Done{}, c.fail(errclass.Retryable, errclass.StaleVersion, "create", "it existed a moment ago and is gone now")
	case c.made(live, ""):
		return Done{Created: live.GetUID(), Warnings: c.Warnings(ctx, live)}, nil
	default:
		return Done{}, c.exists("create")
	}
}

// made reports whether this change made the object: its manager outlives others
// changing every value, the marker tells even where no field is tracked, and the uid
// even after another client has replaced all of it. created is that uid; empty if it is not
// known.
func (c Change) made(live *unstructured.Unstructured, created types.UID) bool {
	return created != "" && live.GetUID() == created || c.Names.owns(live) || c.Names.marked(live)
}

func (c Change) post(ctx context.Context, dry bool) (*unstructured.Unstructured, error) {
	body := c.body(Version{})
	c.Names.mark(body)
	return c.client().Create(ctx, body, metav1.CreateOptions{
		FieldManager: c.Names.Manager, FieldValidation: metav1.FieldValidationStrict, DryRun: dryRun(dry),
	})
}

func (createStrategy) Observe(ctx context.Context, c Change, e Effect) (outcome.Finding, error) {
	_, live, err := c.locate(ctx)
	if err != nil || live == nil || !c.made(live, e.Created) {
		return outcome.NotApplied, err
	}
	if e.Undoing && live.GetDeletionTimestamp() != nil {
		return outcome.Diverged, nil
	}
	return outcome.Applied, nil
}

func (createStrategy) Verbs() (change, compensation []string) {
	return []string{"get", "create"}, []string{"delete"}
}
