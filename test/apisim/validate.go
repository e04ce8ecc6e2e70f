package apisim

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	validatecontent "k8s.io/apimachinery/pkg/api/validate/content"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var metadataPath = field.NewPath("metadata")

// typedMeta returns metadata as their Go type, which the validation takes.
func typedMeta(obj content) *metav1.ObjectMeta {
	m := metadata(obj)
	if fieldsAreSound(obj) {
		m = maps.Clone(m)
		delete(m, "managedFields")
	}
	var typed metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &typed); err != nil {
		panic("metadata that were decoded before cannot be: " + err.Error())
	}
	return &typed
}

// fieldsAreSound reports whether the checks would find nothing in managedFields.
func fieldsAreSound(obj content) bool {
	for _, e := range managedFieldsOf(obj) {
		entry, _ := e.(content)
		manager, operation := text(entry, "manager"), entry["operation"]
		if len(manager) > 128 || operation != "Apply" && operation != "Update" || entry["fieldsType"] != "FieldsV1" || len(text(entry, "subresource")) > 256 {
			return false
		}
		for _, c := range manager {
			if c < ' ' || c > '~' {
				return false
			}
		}
	}
	return true
}

// nameRules says what names a kind allows.
func nameRules(k *kind) apivalidation.ValidateNameFunc {
	switch {
	case k.gvk.Group == "rbac.authorization.k8s.io":
		return pathSegment
	case k.gvk.Kind == "Namespace" && k.gvk.Group == "":
		return apivalidation.ValidateNamespaceName
	case k.gvk.Kind == "Service" && k.gvk.Group == "":
		return apivalidation.NameIsDNS1035Label
	default:
		return apivalidation.NameIsDNSSubdomain
	}
}

// untouched reports whether an update leaves alone what is checked of metadata, all
// of which was found right when it was written.
func untouched(obj, old content) bool {
	m, before := metadata(obj), metadata(old)
	if !equalExcept(m, before, "resourceVersion", "managedFields", "generation") || text(m, "resourceVersion") == "" || generationOf(obj) < generationOf(old) {
		return false
	}
	return fieldsAreSound(obj)
}

// finalizerErrors are those that the checks of most built-in kinds add.
func finalizerErrors(k *kind, m *metav1.ObjectMeta) field.ErrorList {
	var errs field.ErrorList
	if k.gvk.Group != "" && k.gvk.Group != "rbac.authorization.k8s.io" {
		return nil
	}
	for i, name := range m.Finalizers {
		at := metadataPath.Child("finalizers").Index(i)
		switch {
		case strings.Contains(name, "/"), name == string(corev1.FinalizerKubernetes), name == metav1.FinalizerOrphanDependents, name == metav1.FinalizerDeleteDependents:
		default:
			errs = append(errs, field.Invalid(at, name, "name is neither a standard finalizer name nor is it fully qualified"))
		}
	}
	return errs
}

// pathSegment is what every name must be: part of a path.
func pathSegment(name string, prefix bool) []string {
	if prefix {
		return validatecontent.IsPathSegmentPrefix(name)
	}
	return validatecontent.IsPathSegmentName(name)
}

// withMetadata adds to a strategy of a built-in kind what a server checks of every
// object: on an update twice, as the kind's own checks begin with it again.
func withMetadata(k *kind) strategy {
	s := k.strategy
	names := nameRules(k)
	own, ownUpdate, status := s.validate, s.validateNew, s.validateState
	s.validate = func(obj content) field.ErrorList {
		m := typedMeta(obj)
		errs := append(apivalidation.ValidateObjectMeta(m, k.namespaced, names, metadataPath), finalizerErrors(k, m)...)
		if own != nil {
			errs = append(errs, own(obj)...)
		}
		if len(errs) > 0 {
			return errs
		}
		return apivalidation.ValidateObjectMetaAccessor(m, k.namespaced, pathSegment, metadataPath)
	}
	common := func(obj, old content, check func(obj, old content) field.ErrorList, whole bool) field.ErrorList {
		if untouched(obj, old) {
			var errs field.ErrorList
			if check != nil {
				errs = check(obj, old)
			}
			if whole && own != nil {
				errs = append(errs, own(obj)...)
			}
			return errs
		}
		m, before := typedMeta(obj), typedMeta(old)
		errs := apivalidation.ValidateObjectMetaAccessor(m, k.namespaced, pathSegment, metadataPath)
		errs = append(errs, apivalidation.ValidateObjectMetaAccessorUpdate(m, before, metadataPath)...)
		errs = append(errs, apivalidation.ValidateObjectMetaUpdate(m, before, metadataPath)...)
		errs = append(errs, finalizerErrors(k, m)...)
		if check != nil {
			errs = append(errs, check(obj, old)...)
		}
		if whole && k.gvk.Kind != "Lease" {
			errs = append(errs, apivalidation.ValidateObjectMeta(m, k.namespaced, names, metadataPath)...)
			errs = append(errs, finalizerErrors(k, m)...)
		}
		if whole && own != nil {
			errs = append(errs, own(obj)...)
		}
		return errs
	}
	s.validateNew = func(obj, old content) field.ErrorList { return common(obj, old, ownUpdate, true) }
	s.validateState = func(obj, old content) field.ErrorList { return common(obj, old, status, false) }
	return s
}
