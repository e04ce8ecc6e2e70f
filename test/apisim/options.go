package apisim

import (
	"net/http"
	"net/url"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// readOptions reads and checks the options of a write out of the query.
func (r *request) readOptions(req *http.Request) error {
	r.dryRun = len(r.query["dryRun"]) > 0
	validate := r.query.Get("fieldValidation")
	r.strict, r.lenient = validate == metav1.FieldValidationStrict, validate == metav1.FieldValidationIgnore
	if r.verb == "delete" {
		return nil
	}
	if err := checkOptions(r.verb, r.query, types.PatchType(r.contentType)); err != nil {
		return err
	}
	r.manager = r.query.Get("fieldManager")
	if r.manager == "" && r.contentType != string(types.ApplyPatchType) {
		r.manager = agentOf(req)
	}
	return nil
}

func checkOptions(verb string, query url.Values, patch types.PatchType) error {
	if len(query) == 0 && (verb != "patch" || patch != types.ApplyPatchType) {
		return nil
	}
	var errs field.ErrorList
	name := ""
	manager, validate, dryRun := query.Get("fieldManager"), query.Get("fieldValidation"), query["dryRun"]
	switch verb {
	case "create":
		name = "CreateOptions"
		errs = validation.ValidateCreateOptions(&metav1.CreateOptions{FieldManager: manager, FieldValidation: validate, DryRun: dryRun})
	case "update":
		name = "UpdateOptions"
		errs = validation.ValidateUpdateOptions(&metav1.UpdateOptions{FieldManager: manager, FieldValidation: validate, DryRun: dryRun})
	case "patch":
		name = "PatchOptions"
		var force *bool
		if f := query.Get("force"); f != "" {
			yes := isTrue(f)
			force = &yes
		}
		errs = validation.ValidatePatchOptions(&metav1.PatchOptions{FieldManager: manager, FieldValidation: validate, DryRun: dryRun, Force: force}, patch)
	}
	if len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: name}, "", errs)
	}
	return nil
}
