package apisim

import (
	"slices"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// frozenSpec are the rules in CEL that are modelled: those of the Transaction, by which
// all fields of its spec but two stay as they are.
func frozenSpec(k *kind, obj, old content) field.ErrorList {
	is, _ := obj["spec"].(content)
	was, _ := old["spec"].(content)
	if k.gvk.Kind != "Transaction" || equal(is, was) {
		return nil
	}
	const message = "spec is immutable but for suspend and cancel: create another Transaction instead"
	// A default would make one of the others present.
	optional := []string{"ttlSecondsAfterFinished", "revisionHistoryLimit"}
	at := field.NewPath("spec")
	var errs field.ErrorList
	for _, name := range []string{"serviceAccountName", "changes", "lockTimeout", "timeout", "onDelete", "conflictPolicy", optional[0], optional[1]} {
		now, has := is[name]
		before, had := was[name]
		switch {
		case slices.Contains(optional, name) && has != had:
			errs = append(errs, field.Invalid(at, field.OmitValueType{}, message))
		case !has || !had || equal(now, before):
		case name == "changes":
			errs = append(errs, field.Invalid(at.Child(name), field.OmitValueType{}, message))
		default:
			errs = append(errs, field.Invalid(at.Child(name), now, message))
		}
	}
	if (is["dryRun"] == true) != (was["dryRun"] == true) {
		errs = append(errs, field.Invalid(at, field.OmitValueType{}, message))
	}
	return errs
}
