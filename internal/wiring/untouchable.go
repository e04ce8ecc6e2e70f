package wiring

import (
	"slices"
	"strings"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// kept refuses a change of what the API server takes and does not keep, such as reviews and bindings:
// there is no object that could be read, or rolled back. Of other kinds some objects can be made and not
// deleted, or deleted and not made again. That a change cannot be made at all is for its dry run to say.
func (v *validation) kept(change api.Change, ref target.Ref) error {
	making, rollingBack := mutate.Verbs(change.Type)
	verbs, err := v.resolver.Verbs(ref.GVR, slices.Concat(making, rollingBack)...)
	if err != nil || verbs == nil || ref.Deferred {
		return err
	}
	back := target.Lacking(verbs, rollingBack)
	switch {
	case !slices.Contains(verbs, "get"):
		return errclass.New(errclass.Terminal, errclass.Invalid, "validate", ref.String(),
			"objects of this kind cannot be read: their API has no verb get, only %s; Janus could not tell whether the change was made, or roll it back", strings.Join(verbs, ", ")).
			WithHint("make that request outside of the Transaction")
	case target.Lacking(verbs, making) != nil, back == nil, change.AcceptLoss:
		return nil
	default:
		return errclass.New(errclass.Terminal, errclass.Irreversible, "validate", ref.String(),
			"it could not be rolled back: the API of its kind has no verb %s, only %s", strings.Join(back, " or "), strings.Join(verbs, ", ")).
			WithHint("set acceptLoss: true on the change to make it all the same")
	}
}

// outlived refuses to delete what the Transaction itself would go with: nothing
// could roll that back.
func (v *validation) outlived(ref target.Ref) error {
	refuse := func(why, hint string) error {
		return errclass.New(errclass.Terminal, errclass.Irreversible, "validate", ref.String(), "%s", why).WithHint(hint)
	}
	const holds = "it holds the Transaction itself, which would be deleted with it"
	switch {
	case ref.GVK.GroupKind() == target.NamespaceKind && ref.Name == v.txn.Namespace:
		return refuse(holds, "delete it from a Transaction in another namespace, or outside of one")
	case ref.GVK.GroupKind() == target.CRDKind && ref.Name == api.Resource.GroupResource().String():
		return refuse(holds, "delete it outside of a Transaction")
	case ref.GVK.GroupKind() == api.Kind.GroupKind() && ref.Namespace == v.txn.Namespace && ref.Name == v.txn.Name:
		return refuse("it is the Transaction itself", "delete it outside of a Transaction; it can be deleted at any time")
	}
	return nil
}
