package enforced

import (
	"context"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/wiring"
)

// attempts is how often a table is read and written before the Transaction waits: others
// write it too.
const attempts = 20

// Tables are the LockTables of a cluster.
type Tables struct {
	client dynamic.NamespaceableResourceInterface
}

// NewTables returns the tables, read and written with janusd's own identity.
func NewTables(own dynamic.Interface) *Tables {
	return &Tables{own.Resource(api.LockTableResource)}
}

// An edit changes what is in a table. It says whether there is anything to write. It is
// made again when another client has written the table in between.
type edit func(locks map[string]string) (changed bool, err error)

// edit changes the table of a namespace, if nobody else has written it meanwhile. lost is
// called when it is not known whether the write took effect. A namespace that does not exist
// has no table, and gets none. One answer is not enough to leave a table as it is: it may be
// an old one.
func (t *Tables) edit(ctx context.Context, namespace string, change edit, lost func()) error {
	unchanged := 0
	for range attempts {
		table, err := t.read(ctx, namespace)
		if err != nil {
			return err
		}
		locks, err := locksOf(table)
		if err != nil {
			return err
		}
		changed, err := change(locks)
		if err != nil {
			return err
		}
		if !changed {
			if unchanged++; unchanged == 2 {
				return nil
			}
			continue
		}
		err = t.write(ctx, table, locks)
		switch {
		case err == nil, isNamespaceMissing(err):
			return nil
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err), apierrors.IsNotFound(err) && table.GetUID() != "":
			continue // Another client has written, made or deleted it.
		}
		if errclass.ClassOf(err) == errclass.Unknown {
			lost()
		}
		return explain(err, "write", namespace)
	}
	return errclass.New(errclass.Retryable, errclass.StaleVersion, "write", describe(namespace), "others have written it %d times in between", attempts)
}

// read gets the table of a namespace. One without a uid is not there yet.
func (t *Tables) read(ctx context.Context, namespace string) (*unstructured.Unstructured, error) {
	table, err := t.client.Namespace(namespace).Get(ctx, api.LockTableName, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		table = &unstructured.Unstructured{}
		table.SetGroupVersionKind(api.LockTableKind)
		table.SetNamespace(namespace)
		table.SetName(api.LockTableName)
		table.SetLabels(map[string]string{"app.kubernetes.io/managed-by": "janus"})
		return table, nil
	}
	return table, explain(err, "read", namespace)
}

// write stores a table as it was read but for its locks. Its resourceVersion, or that it has
// none, makes the write fail if it is another by now.
func (t *Tables) write(ctx context.Context, table *unstructured.Unstructured, locks map[string]string) error {
	table = table.DeepCopy()
	if err := unstructured.SetNestedStringMap(table.Object, locks, "locks"); err != nil {
		return fmt.Errorf("encode the locks: %w", err)
	}
	client := t.client.Namespace(table.GetNamespace())
	var err error
	if table.GetUID() == "" {
		_, err = client.Create(ctx, table, metav1.CreateOptions{FieldManager: wiring.Manager})
	} else {
		_, err = client.Update(ctx, table, metav1.UpdateOptions{FieldManager: wiring.Manager})
	}
	return err
}

func locksOf(table *unstructured.Unstructured) (map[string]string, error) {
	locks, _, err := unstructured.NestedStringMap(table.Object, "locks")
	if err != nil {
		return nil, errclass.New(errclass.Terminal, errclass.Invalid, "decode", describe(table.GetNamespace()), "%w", err)
	}
	if locks = maps.Clone(locks); locks == nil {
		locks = map[string]string{}
	}
	return locks, nil
}

// add enters targets with their holder.
func (t *Tables) add(ctx context.Context, namespace string, keys []string, holder string, confirm func(context.Context) error, lost func()) error {
	return t.edit(ctx, namespace, func(locks map[string]string) (changed bool, err error) {
		for _, key := range keys {
			// Anyone who is there has ended, or has lost its Lease to this holder.
			if locks[key] != holder {
				locks[key], changed = holder, true
			}
		}
		if !changed {
			return false, nil
		}
		if len(locks) > api.MaxLocks {
			return false, full(namespace)
		}
		return true, confirm(ctx)
	}, lost)
}

// remove takes out what holders have entered.
func (t *Tables) remove(ctx context.Context, namespace string, holders map[string]bool, confirm func(context.Context) error) error {
	return t.edit(ctx, namespace, func(locks map[string]string) (bool, error) {
		before := len(locks)
		maps.DeleteFunc(locks, func(_, holder string) bool { return holders[holder] })
		if len(locks) == before {
			return false, nil
		}
		return true, confirm(ctx)
	}, func() {})
}

func describe(namespace string) string {
	return "LockTable " + namespace + "/" + api.LockTableName
}

func full(namespace string) error {
	return errclass.New(errclass.Retryable, errclass.TooLarge, "write", describe(namespace), "it is full: waiting until other Transactions have ended")
}

// explain says what can be done about an error. None of what janusd lacks is the fault of a
// Transaction, and all of it may heal.
func explain(err error, op, namespace string) error {
	const hint = "install deploy/enforced, or run janusd without --enforce-locks"
	switch wrapped := errclass.Wrap(err, op, describe(namespace), false); {
	case err == nil:
		return nil
	case errclass.Is(wrapped, errclass.TooLarge):
		return full(namespace)
	case apierrors.IsForbidden(err) && !errclass.Is(wrapped, errclass.Terminating):
		return errclass.New(errclass.Retryable, errclass.AccessDenied, op, describe(namespace), "%w", err).WithHint(hint)
	case apierrors.IsNotFound(err):
		return errclass.New(errclass.Retryable, errclass.KindNotFound, op, describe(namespace), "%w", err).WithHint(hint)
	default:
		return wrapped
	}
}

// isNamespaceMissing tells a missing namespace from a missing kind.
func isNamespaceMissing(err error) bool {
	return errclass.Is(err, errclass.NamespaceNotFound)
}
