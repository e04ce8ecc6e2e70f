package mutate

import (
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/fault"
	"janus.io/janus/internal/target"
)

// admitPivot refuses an Update or a Patch that the API server does not let anybody
// take back, unless no other change comes after it or it accepts the loss; then it
// warns.
func (c Change) admitPivot(before, after *unstructured.Unstructured) ([]string, error) {
	if before == nil || after == nil {
		return nil, nil
	}
	why := c.pivot(before, after)
	forGood, warnings := c.deletes(before, after)
	if why == "" {
		why = forGood
	}
	switch {
	case why == "":
		return warnings, nil
	case c.AcceptLoss || known(c.Last):
		return append(c.warn("a rollback cannot take it back: "+why), warnings...), nil
	default:
		return nil, c.fail(fault.Terminal, fault.Irreversible, "prepare", "it could not be taken back: %s", why).
			WithHint("make it the last change, or set acceptLoss: true on it")
	}
}

// known is the answer to what a Change may not be able to tell.
func known(so func() bool) bool { return so != nil && so() }

// pivot says what about the step from before to after is for good.
func (c Change) pivot(before, after *unstructured.Unstructured) string {
	switch c.Ref.GVK.GroupKind() {
	case target.SecretKind, schema.GroupKind{Kind: "ConfigMap"}:
		was, _, _ := unstructured.NestedBool(before.Object, "immutable")
		is, _, _ := unstructured.NestedBool(after.Object, "immutable")
		if is && !was {
			return "what is immutable stays so"
		}
	case claimKind:
		was, is := requested(before), requested(after)
		if is.Cmp(was) > 0 {
			return fmt.Sprintf("a claim that has grown from %s to %s cannot shrink", was.String(), is.String())
		}
	}
	return ""
}

// requested is the storage that a claim asks for; zero for none.
func requested(claim *unstructured.Unstructured) resource.Quantity {
	text, _, _ := unstructured.NestedString(claim.Object, "spec", "resources", "requests", "storage")
	size, err := resource.ParseQuantity(text)
	if err != nil {
		return resource.Quantity{}
	}
	return size
}
