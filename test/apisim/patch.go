package apisim

import (
	"errors"
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"
)

// patch answers a PATCH.
func (r *request) patch() (*stored, bool, error) {
	old := r.find(r.kind, r.namespace, r.name)
	kind := types.PatchType(r.contentType)
	switch kind {
	case types.ApplyPatchType:
		return r.apply(old)
	case types.JSONPatchType, types.MergePatchType:
	default:
		return nil, false, r.unsupported()
	}
	if old == nil {
		return nil, false, apierrors.NewNotFound(r.kind.groupResource(), r.name)
	}
	obj, err := r.patched(old, kind)
	if err != nil {
		return nil, false, err
	}
	obj = r.owned(old, obj)
	if err := r.matchPatched(obj, old); err != nil {
		return nil, false, err
	}
	out, err := r.replace(obj, old)
	return out, false, err
}

func (r *request) unsupported() error {
	return apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, "", schema.GroupResource{}, "",
		fmt.Sprintf("the body of the request was in an unknown format - accepted media types include: application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml (apisim: not %s)", r.contentType), 0, false)
}

// patched returns the live object with the patch applied, in the shape of its kind.
func (r *request) patched(old *stored, kind types.PatchType) (content, error) {
	if kind == types.MergePatchType {
		if obj, ok := r.mergedQuickly(old); ok {
			return obj, nil
		}
	}
	data, repeated, err := r.applyJSON(old.encoded(), kind)
	if err != nil {
		return nil, err
	}
	if r.nameless(data) {
		return r.fieldManager(r.kind, r.subresource).blank(), nil
	}
	obj, unknown, err := r.kind.shape.decode(data, r.strict)
	if err == nil {
		if all := append(repeated, unknown...); len(all) > 0 && r.strict {
			err = runtime.NewStrictDecodingError(all)
		}
	}
	var bad *decodeError
	if errors.As(err, &bad) {
		err = bad.err
	}
	if err != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
			field.Invalid(field.NewPath("patch"), string(data), err.Error()),
		})
	}
	return obj, nil
}

// nameless reports a patched object without apiVersion. Of one of a built-in kind a
// server reads nothing then.
func (r *request) nameless(data []byte) bool {
	var is struct {
		APIVersion string `json:"apiVersion"`
	}
	_, typed := r.kind.shape.(*typedShape)
	return typed && unmarshal(data, &is) == nil && is.APIVersion == ""
}

// applyJSON applies the patch to the encoded object.
func (r *request) applyJSON(data []byte, kind types.PatchType) (patched []byte, strictErrors []error, err error) {
	if kind == types.MergePatchType {
		if r.lenient {
			strictErrors = nil
		} else if strictErrors, err = kjson.UnmarshalStrict(r.body, &map[string]any{}); err != nil {
			return nil, nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		patched, err = jsonpatch.MergePatch(data, r.body)
		if errors.Is(err, jsonpatch.ErrBadJSONPatch) {
			err = apierrors.NewBadRequest(err.Error())
		}
		return patched, strictErrors, err
	}
	if strictErrors, err = r.checkSteps(); err != nil {
		return nil, nil, err
	}
	patch, err := jsonpatch.DecodePatch(r.body)
	if err != nil {
		return nil, nil, apierrors.NewBadRequest(err.Error())
	}
	patched, err = patch.Apply(data)
	if err != nil {
		return nil, nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
	}
	return patched, strictErrors, nil
}

// checkSteps looks for unknown fields in a JSON patch.
func (r *request) checkSteps() ([]error, error) {
	if r.lenient {
		return nil, nil
	}
	var operations []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		From  string `json:"from"`
		Value any    `json:"value"`
	}
	found, err := kjson.UnmarshalStrict(r.body, &operations)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	for i, e := range found {
		found[i] = fmt.Errorf("json patch %w", e)
	}
	return found, nil
}

// matchPatched checks the uid, namespace and name of what a patch has made.
func (r *request) matchPatched(obj content, old *stored) error {
	m := metadata(obj)
	if m == nil {
		m = ownMetadata(obj)
	}
	if uid := text(m, "uid"); uid != "" && old == nil {
		return r.conflict("uid mismatch: the provided object specified uid %s, and no existing object was found", uid)
	}
	if err := r.matchNamespace(m); err != nil {
		return err
	}
	return r.matchName(m)
}

// apply answers a server-side apply.
func (r *request) apply(old *stored) (*stored, bool, error) {
	if old == nil && r.subresource != "" {
		return nil, false, apierrors.NewNotFound(r.kind.groupResource(), r.name)
	}
	if r.ownerless() {
		return nil, false, unmodelled("an apply to an object without managedFields")
	}
	r.applied = true
	applied, err := r.configuration()
	if err != nil {
		return nil, false, err
	}
	obj, err := r.fieldManager(r.kind, r.subresource).apply(old, applied, r.manager, isTrue(r.query.Get("force")))
	if err != nil {
		return nil, false, err
	}
	if r.strict {
		if err := yaml.UnmarshalStrict(r.body, &map[string]any{}); err != nil {
			return nil, false, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding YAML: %v", err))
		}
	}
	ownMetadata(obj)
	if err := r.matchPatched(obj, old); err != nil {
		return nil, false, err
	}
	if old == nil {
		return r.createdByUpdate(obj)
	}
	out, err := r.replace(obj, old)
	return out, false, err
}

// configuration reads the body of an apply. Integers must not become floats.
func (r *request) configuration() (content, error) {
	if applied, ok := parsed(r.body); ok {
		return applied, nil
	}
	var applied content
	if err := kjson.UnmarshalCaseSensitivePreserveInts(r.body, &applied); err == nil {
		return applied, nil
	}
	data, err := yaml.YAMLToJSON(r.body)
	if err == nil {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &applied)
	}
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
	}
	return applied, nil
}
