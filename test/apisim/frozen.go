package apisim

import "k8s.io/apimachinery/pkg/util/validation/field"

// mayBeAbsent are the fields that have no default, and a rule of their own that they stay
// absent. A default would make them present.
var mayBeAbsent = map[string]bool{"ttlSecondsAfterFinished": true, "revisionHistoryLimit": true, "parallelism": true, "retryLimit": true, "changesPerMinute": true, "fieldManager": true, "approval": true}

// frozenSpec are the rules in CEL that are modelled: those of the Transaction, by which
// all fields of its spec but two stay as they are.
func frozenSpec(k *kind, obj, old content) field.ErrorList {
	is, _ := obj["spec"].(content)
	was, _ := old["spec"].(content)
	if k.gvk.Kind != "Transaction" || equal(is, was) {
		return nil
	}
	const message = "spec is immutable but for suspend and cancel: create another Transaction instead"
	at := field.NewPath("spec")
	var errs field.ErrorList
	for _, name := range []string{"serviceAccountName", "changes", "lockTimeout", "timeout", "onDelete", "conflictPolicy", "ttlSecondsAfterFinished", "revisionHistoryLimit", "parallelism", "undoOf", "retryLimit", "changesPerMinute", "fieldManager", "approval"} {
		now, has := is[name]
		before, had := was[name]
		switch {
		case has != had && mayBeAbsent[name]:
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
