package apisim

import (
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/clock"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// crdStrategy is that of CustomResourceDefinitions. A kind is established at once,
// which a real server takes some milliseconds for.
func crdStrategy() strategy {
	return strategy{
		prepareCreate: func(obj content) {
			obj["status"] = established(obj)
			metadata(obj)["generation"] = int64(1)
		},
		prepareUpdate: func(obj, old content) {
			setOrDrop(obj, "status", old)
			if !equal(obj["spec"], old["spec"]) {
				metadata(obj)["generation"] = generationOf(old) + 1
			}
		},
		prepareStatus: func(obj, old content) { setOrDrop(obj, "spec", old) },
		validate: func(obj content) field.ErrorList {
			if _, err := define(obj); err != nil {
				return field.ErrorList{field.Invalid(field.NewPath("spec"), nameOf(obj), err.Error())}
			}
			return nil
		},
		reset:       fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
		resetStatus: fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}
}

func established(obj content) content {
	now := clock.RealClock{}.Now().UTC().Format(time.RFC3339)
	condition := func(kind, reason, message string) any {
		return content{"type": kind, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
	}
	spec, _ := obj["spec"].(content)
	var stored []any
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		if fields, _ := v.(content); fields["storage"] == true {
			stored = []any{text(fields, "name")}
		}
	}
	return content{
		"acceptedNames":  spec["names"],
		"storedVersions": stored,
		"conditions": []any{
			condition("NamesAccepted", "NoConflicts", "no conflicts found"),
			condition("Established", "InitialNamesAccepted", "the initial names have been accepted"),
		},
	}
}
