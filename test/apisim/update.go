package apisim

import (
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// update answers a PUT.
func (r *request) update() (*stored, bool, error) {
	obj, err := r.decoded()
	if err != nil {
		return nil, false, err
	}
	m := metadata(obj)
	if m == nil {
		m = ownMetadata(obj)
	}
	if err := r.matchNamespace(m); err != nil {
		return nil, false, err
	}
	if err := r.matchName(m); err != nil {
		return nil, false, err
	}
	old := r.find(r.kind, r.namespace, r.name)
	creates := r.kind.createOnUpdate && r.subresource == ""
	if old == nil && !creates {
		return nil, false, apierrors.NewNotFound(r.kind.groupResource(), r.name)
	}
	if uid := text(m, "uid"); uid != "" {
		is := ""
		if old != nil {
			is = uidOf(old.content)
		}
		if uid != is {
			return nil, false, r.conflict("StorageError: invalid object, Code: 4, Key: %s, ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: UID in precondition: %v, UID in object meta: %v", r.key(), uid, is)
		}
	}
	obj = r.owned(old, obj)
	if old == nil {
		return r.createdByUpdate(obj)
	}
	out, err := r.replace(obj, old)
	return out, false, err
}

// key is where a real server keeps the object in etcd; it says so in an error.
func (r *request) key() string {
	prefix, key := "/registry", "/"+r.kind.resource
	if r.dryRun {
		prefix = ""
	}
	if strings.Contains(r.kind.gvk.Group, ".") && !strings.HasSuffix(r.kind.gvk.Group, ".k8s.io") {
		key = "/" + r.kind.gvk.Group + key
	}
	if r.namespace != "" {
		key += "/" + r.namespace
	}
	return prefix + key + "/" + r.name
}

// createdByUpdate makes the object that a PUT or an apply has not found.
func (r *request) createdByUpdate(obj content) (*stored, bool, error) {
	if err := r.admitNamespace(metadata(obj)); err != nil {
		return nil, false, err
	}
	obj, err := r.mutate("CREATE", obj, nil)
	if err != nil {
		return nil, false, err
	}
	if _, err := parseVersion(text(metadata(obj), "resourceVersion")); err != nil {
		return nil, false, err
	}
	out, err := r.createObject(obj)
	return out, true, err
}

func (r *request) matchName(m content) error {
	name := text(m, "name")
	switch {
	case name == "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", r.name))
	case name != r.name:
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", name, r.name))
	default:
		return nil
	}
}

func (r *request) conflict(format string, args ...any) error {
	return apierrors.NewConflict(r.kind.groupResource(), r.name, fmt.Errorf(format, args...))
}

// replace stores a new version of an object, once the field manager has seen it.
func (r *request) replace(obj content, old *stored) (*stored, error) {
	obj, err := r.mutate("UPDATE", obj, old.content)
	if err != nil {
		return nil, err
	}
	m := ownMetadata(obj)
	if err := r.checkVersion(m, old); err != nil {
		return nil, err
	}
	if err := r.beforeUpdate(obj, old.content); err != nil {
		return nil, err
	}
	if sameButTimes(obj, old.content) {
		metadata(obj)["managedFields"] = metadata(old.content)["managedFields"]
	}
	if err := r.admit("UPDATE", obj, old.content); err != nil {
		return nil, err
	}
	return r.storeUpdate(obj, old)
}

// storeUpdate stores what an update has come to, unless that is nothing or the end
// of the object.
func (r *request) storeUpdate(obj content, old *stored) (*stored, error) {
	if goesWith(r.kind, obj, old.content) {
		if !r.dryRun {
			r.remove(old, r.user)
			r.dirty = true
		}
		return &stored{kind: r.kind, content: r.kind.shape.reread(obj, r.applied)}, nil // as it was sent
	}
	if r.dryRun {
		return r.unstored(obj), nil
	}
	delete(metadata(obj), "selfLink")
	raw := converted(obj, r.kind.stores())
	if equalExcept(raw, old.raw, "metadata") && equalExcept(metadata(raw), metadata(old.raw), "resourceVersion") {
		return old, nil
	}
	if err := r.fit(obj, old); err != nil {
		return nil, err
	}
	r.noteOwners(obj)
	return r.put(obj), nil
}

// goesWith says that an object is deleted by an update: it was waiting for the
// finalizers that the update takes off.
func goesWith(k *kind, obj, old content) bool {
	if _, ok := metadata(obj)["finalizers"]; ok || !deleting(old) {
		return false
	}
	if grace, ok := metadata(old)["deletionGracePeriodSeconds"].(int64); ok && grace != 0 {
		return false
	}
	if k.gvk.Group == "" && k.gvk.Kind == "Namespace" {
		spec, _ := obj["spec"].(content)
		finalizers, _ := spec["finalizers"].([]any)
		return len(finalizers) == 0
	}
	return true
}

// checkVersion compares the resourceVersion of a write with what is stored.
func (r *request) checkVersion(m content, old *stored) error {
	version, err := parseVersion(text(m, "resourceVersion"))
	switch {
	case err != nil:
		return err
	case version == 0 && r.kind.unconditional:
		m["resourceVersion"] = versionOf(old.content)
		return nil
	case version == 0:
		gk := schema.GroupKind{Group: r.kind.gvk.Group, Kind: r.kind.resource}
		return apierrors.NewInvalid(gk, r.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata").Child("resourceVersion"), version, "must be specified for an update"),
		})
	case version != old.version:
		return r.conflict("the object has been modified; please apply your changes to the latest version and try again")
	default:
		return nil
	}
}

// beforeUpdate keeps what an update cannot change, and checks the rest.
func (r *request) beforeUpdate(obj, old content) error {
	k := r.kind
	m, before := metadata(obj), metadata(old)
	if text(obj, "apiVersion") == "" {
		return apierrors.NewInternalError(errors.New("Object 'apiVersion' is missing in 'object has no apiVersion field'")) //nolint:staticcheck // the text is the server's
	}
	if err := r.matchNamespace(m); err != nil {
		return err
	}
	setOrDrop(m, "generation", before)
	validate := k.strategy.validateNew
	if r.subresource != "" {
		k.strategy.prepareStatus(obj, old)
		validate = k.strategy.validateState
	} else if k.strategy.prepareUpdate != nil {
		k.strategy.prepareUpdate(obj, old)
	}
	m = metadata(obj)
	if text(m, "uid") == "" {
		m["uid"] = before["uid"]
	}
	if before["creationTimestamp"] != nil {
		m["creationTimestamp"] = before["creationTimestamp"]
	}
	if before["deletionTimestamp"] != nil {
		m["deletionTimestamp"] = before["deletionTimestamp"]
	}
	if before["deletionGracePeriodSeconds"] != nil && m["deletionGracePeriodSeconds"] == nil {
		m["deletionGracePeriodSeconds"] = before["deletionGracePeriodSeconds"]
	}
	if errs := validate(obj, old); len(errs) > 0 {
		return r.invalid(obj, errs)
	}
	if k.strategy.canonicalize != nil {
		k.strategy.canonicalize(obj)
	}
	return nil
}
