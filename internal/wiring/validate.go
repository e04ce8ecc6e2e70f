package wiring

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	legal "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// fits refuses a Transaction whose status could not be written to the end.
func fits(t *api.Transaction) error {
	size, err := plan.StoredBytes(t)
	if err != nil || size <= plan.MaxBytes {
		return err
	}
	hint := "split it"
	if slices.ContainsFunc(t.Spec.Changes, func(c api.Change) bool { return c.Content != nil }) {
		hint += ", or keep contents outside of it with contentFrom, as kubectl janus run does; the size of the targets does not count"
	}
	return errclass.New(errclass.Terminal, errclass.TooLarge, "validate", describe(t),
		"with its status it would take %d bytes, and %d can be stored", size, plan.MaxBytes).WithHint(hint)
}

// first gives all problems the class and reason of the first that will not heal;
// when each of them may, they may together.
func first(problems []error) error {
	if len(problems) == 1 {
		return problems[0]
	}
	all := list(problems)
	for _, err := range problems {
		if class := errclass.ClassOf(err); class == errclass.Terminal || class == errclass.Conflict {
			return &errclass.Error{Op: "prepare", Target: "the changes", Class: class, Reason: errclass.ReasonOf(err), Err: all}
		}
	}
	return all
}

// list is several problems as one error, on one line.
type list []error

func (l list) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d problems", len(l))
	for i, err := range l {
		fmt.Fprintf(&b, "; (%d) %s", i+1, err)
	}
	return b.String()
}

func (l list) Unwrap() []error { return l }

func accountOf(t *api.Transaction) types.NamespacedName {
	return types.NamespacedName{Namespace: t.Namespace, Name: t.Spec.ServiceAccountName}
}

// validation goes through the changes in order and remembers what earlier ones
// make: kinds, namespaces and names.
type validation struct {
	resolver   *target.Resolver
	txn        *api.Transaction
	planned    []target.PlannedKind
	namespaces map[string]bool
	names      map[string]bool
	// content returns the content of a change, from wherever it is.
	content func(i int) (map[string]any, error)
	// image gives the target of an item of an undo as it was before the change that is
	// undone.
	image func(api.Item) (map[string]any, error)
	// live returns a CustomResourceDefinition as it is; nil if there is none, or if the
	// ServiceAccount may not read it.
	live func(target.Ref) (map[string]any, error)
	// definitions are the outlines of those that earlier changes make.
	definitions map[string]map[string]any
	// activated reports whether an activation holds now.
	activated func(of api.Target, a *api.Activation) (bool, error)
	// fresh is set once the kinds that are served have been looked up again.
	fresh bool
}

// begin makes the item of a change, and skips it if it is not activated.
func (v *validation) begin(i int, change api.Change) (api.Item, error) {
	item := api.Item{Name: plan.ChangeName(i, change), Target: change.Target}
	plan.SetItemState(&item, api.ItemPending)
	if v.txn.Spec.UndoOf != nil || change.Type == api.Await {
		item.Type = change.Type
	}
	item.Guard = change.Guard && change.Type == api.Await
	if v.txn.Spec.UndoOf != nil {
		item.ReadyWhen = change.ReadyWhen
	}
	if v.names[item.Name] {
		return item, errclass.New(errclass.Terminal, errclass.Invalid, "validate", change.Target.String(),
			"the name %q is used by two changes", item.Name).WithHint("names are unique within a Transaction; the default is the position in the list")
	}
	v.names[item.Name] = true
	if wrong := legal.IsPathSegmentName(change.Target.Name); change.Target.Name == "" || len(wrong) > 0 {
		return item, errclass.New(errclass.Terminal, errclass.Invalid, "validate", change.Target.String(),
			"no object can have the name %q: %s", change.Target.Name, strings.Join(append(wrong, "a name is part of a URL"), ", "))
	}
	if change.Activation == nil || len(plan.Deciders(v.txn, i)) > 0 {
		return item, nil
	}
	return item, v.activate(&item, change.Activation)
}

// activate decides whether the change of an item is activated, and skips it if not.
func (v *validation) activate(item *api.Item, a *api.Activation) error {
	v.refresh()
	holds, err := v.activated(item.Target, a)
	if err != nil {
		return err
	}
	plan.NoteResult(item, api.ConditionActivation, holds, metav1.Time{}, "")
	if holds {
		return nil
	}
	return plan.Skip(item, plan.ReasonNotActivated, plan.NotActivated(item, a))
}

// item finds the resource of an item, and checks its change against its target and against
// what earlier changes make.
func (v *validation) item(item *api.Item, i int, change api.Change) error {
	if len(v.planned) > 0 {
		v.refresh()
	}
	if err := checkGates(v.txn, change); err != nil {
		return err
	}
	if change.Type == api.Await {
		return v.unserved(item, i, v.awaited(item))
	}
	ref, err := v.resolver.Resolve(change.Target, v.txn.Namespace, v.planned)
	if err != nil {
		return v.unserved(item, i, err)
	}
	item.Target.Namespace, item.Resource = ref.Namespace, ref.GVR.Resource
	if err := v.kept(change, ref); err != nil {
		return err
	}
	if err := v.released(item, i, ref); err != nil {
		return err
	}
	content, err := v.contentOf(i, *item, ref)
	if err != nil {
		return err
	}
	if change.Type == api.Delete {
		if err := v.outlived(ref); err != nil {
			return err
		}
	}
	if ref.GVK.GroupKind() == target.CRDKind && change.Type != api.Delete {
		if content, err = v.definition(change.Type, ref, content); err != nil {
			return err
		}
	}
	item.Deferred = ref.Deferred || v.namespaces[ref.Namespace] && ref.Namespace != ""
	v.remember(change.Type, ref, content)
	return nil
}

// released refuses a release of what an earlier change of the Transaction writes: who owned fields
// before that is who the commit gives them back to.
func (v *validation) released(item *api.Item, i int, ref target.Ref) error {
	if v.txn.Spec.Changes[i].Release == nil {
		return nil
	}
	for j := range v.txn.Status.Items[:i] {
		earlier := v.txn.Status.Items[j]
		if other, err := refOf(earlier); err == nil && earlier.Changes() && earlier.Resource != "" && other.ID() == ref.ID() {
			return errclass.New(errclass.Terminal, errclass.Invalid, "validate", item.Target.String(),
				"item %s changes it before its fields are released", earlier.Name).WithHint("put the release first, with all managers that release fields of it")
		}
	}
	return nil
}

// unserved returns why the target of an item cannot be resolved. Where its activation was to be decided
// when its turn comes, it is decided now: what resource to lock, and which rights to ask for, nobody
// knows, and no change of the Transaction tells.
func (v *validation) unserved(item *api.Item, i int, err error) error {
	if !errclass.Is(err, errclass.KindNotFound) || !plan.Undecided(v.txn, i) {
		return err
	}
	if decided := v.activate(item, v.txn.Spec.Changes[i].Activation); decided != nil || item.State != api.ItemSkipped {
		return cmp.Or(decided, err)
	}
	return plan.SkipDependents(v.txn, v.txn.Status.Items)
}

// awaited completes an item that is only waited for. Its kind may be served later, unless it is a
// guard, which is locked: what it is then is found out whenever it is looked at.
func (v *validation) awaited(item *api.Item) error {
	ref, err := v.resolver.Resolve(item.Target, v.txn.Namespace, nil)
	if errclass.Is(err, errclass.KindNotFound) && !item.Guard {
		return nil
	}
	if err != nil {
		return err
	}
	item.Target.Namespace, item.Resource = ref.Namespace, ref.GVR.Resource
	return v.kept(api.Change{Type: api.Await}, ref)
}

// contentOf is the content of a change as far as it is known: that of an undo is found when its
// change is tried, but for definitions.
func (v *validation) contentOf(i int, item api.Item, ref target.Ref) (map[string]any, error) {
	switch {
	case v.txn.Spec.UndoOf == nil:
		content, err := v.content(i)
		return content, checkContent(v.txn.Spec.Changes[i], item.Target, content, err)
	case ref.GVK.GroupKind() == target.CRDKind:
		return v.image(item)
	default:
		return nil, nil
	}
}

// refresh has the kinds that are served looked up again, once: where it decides what is
// made whether a kind is served, one that has gone since must not be found.
func (v *validation) refresh() {
	if !v.fresh {
		v.resolver.Refresh()
		v.fresh = true
	}
}

// remember notes what a change makes: a namespace, or a kind. A CRD that is there already
// may get another version.
func (v *validation) remember(change api.ChangeType, ref target.Ref, content map[string]any) {
	switch kind := ref.GVK.GroupKind(); {
	case kind == target.CRDKind:
		v.planned = append(v.planned, target.PlannedKinds(content)...)
	case kind == target.NamespaceKind && change == api.Create:
		v.namespaces[ref.Name] = true
	}
}

// definition is the outline of what a change makes of a CustomResourceDefinition.
func (v *validation) definition(change api.ChangeType, ref target.Ref, content map[string]any) (map[string]any, error) {
	outline := target.Outline(content)
	if change != api.Create {
		before := v.definitions[ref.Name]
		if before == nil {
			var err error
			if before, err = v.live(ref); err != nil {
				return nil, err
			}
		}
		outline = target.Completed(content, before)
	}
	v.definitions[ref.Name] = outline
	return outline, nil
}

// checkContent checks the content of a change, and the error with which it was read, against
// the change.
func checkContent(change api.Change, t api.Target, content map[string]any, err error) error {
	if _, ok := mutate.For(change.Type); !ok {
		return errclass.New(errclass.Terminal, errclass.Invalid, "validate", t.String(), "unknown type of change %q", change.Type).
			WithHint("use Create, Update, Patch or Delete")
	}
	switch {
	case errors.Is(err, errNotAnObject):
		return errclass.New(errclass.Terminal, errclass.Invalid, "validate", t.String(), "%w", err)
	case err != nil:
		return err
	case change.Type == api.Delete && content != nil:
		return errclass.New(errclass.Terminal, errclass.Invalid, "validate", t.String(), "a Delete has no content")
	case change.Release != nil && (change.Type != api.Patch || content != nil):
		return errclass.New(errclass.Terminal, errclass.Invalid, "validate", t.String(), "release is for a Patch that has no content")
	case change.Type != api.Delete && content == nil && change.Release == nil:
		return errclass.New(errclass.Terminal, errclass.Invalid, "validate", t.String(), "a %s needs content", change.Type)
	}
	if _, list := content["items"].([]any); list {
		return errclass.New(errclass.Terminal, errclass.Invalid, "validate", t.String(),
			"content.items is a list: an object with one looks like a list of objects, and the API server cannot show it").
			WithHint("change it outside of a Transaction")
	}
	return contradiction(content, t)
}
