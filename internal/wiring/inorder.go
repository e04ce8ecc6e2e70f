package wiring

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// An undo goes through the changes in reverse order. What was made stricter before an object
// was corrected is undone after it, and refuses the object as it was: no order of all of
// them is right in every case, so it is said what stands in the way.

// explainOrder adds to the problems of an undo which later item of it may be their reason.
func (f *preflight) explainOrder() {
	if f.undo == nil {
		return
	}
	items := f.txn.Status.Items
	for n, p := range f.problems {
		var found *errclass.Error
		if !errors.As(p.Err, &found) {
			continue
		}
		for j := p.Item + 1; j < len(items); j++ {
			if !decides(&items[j], &items[p.Item], found.Reason) {
				continue
			}
			own := *found
			own.Hint = fmt.Sprintf("item %s (%s), which is undone after it, may stand in its way: undo that one first, by hand or by a Transaction of its own",
				items[j].Name, items[j].Target.String())
			f.problems[n].Err = &own
			break
		}
	}
}

const admissionGroup = "admissionregistration.k8s.io"

// decides reports whether the target of an item has a say in whether that of another may
// be written, as far as kinds and a reason tell.
func decides(item, other *api.Item, reason string) bool {
	ref, err := refOf(*item)
	if err != nil {
		return false
	}
	written, err := refOf(*other)
	if err != nil {
		return false
	}
	kind := ref.GVK.GroupKind()
	defines := kind == target.CRDKind && ref.Name == written.GVR.GroupResource().String()
	near := ref.Namespace == written.Namespace && written.Namespace != ""
	rules := kind.Group == admissionGroup ||
		near && (kind == schema.GroupKind{Kind: "ResourceQuota"} || kind == schema.GroupKind{Kind: "LimitRange"}) ||
		kind == target.NamespaceKind && ref.Name == written.Namespace
	switch reason {
	case errclass.Invalid, errclass.TooLarge:
		return defines || kind.Group == admissionGroup
	case errclass.AccessDenied:
		return rules || kind.Group == "rbac.authorization.k8s.io"
	case errclass.Rejected:
		return rules
	case errclass.NotFound:
		return kind.Group == "rbac.authorization.k8s.io" && written.GVK.Group == kind.Group
	case errclass.KindNotFound:
		return defines
	case errclass.AlreadyAllocated:
		return kind == schema.GroupKind{Kind: "Service"}
	}
	return false
}
