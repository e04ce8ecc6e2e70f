package apisim

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// create answers a POST.
func (r *request) create() (*stored, error) {
	obj, err := r.decoded()
	if err != nil {
		return nil, err
	}
	m := metadata(obj)
	if m == nil {
		m = ownMetadata(obj)
	}
	if err := r.matchNamespace(m); err != nil {
		return nil, err
	}
	for _, k := range []string{"creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"} {
		delete(m, k)
	}
	r.name = text(m, "name")
	obj = r.owned(nil, obj)
	if err := r.admitNamespace(metadata(obj)); err != nil {
		return nil, err
	}
	if obj, err = r.mutate("CREATE", obj, nil); err != nil {
		return nil, err
	}
	return r.createObject(obj)
}

// decoded reads the object out of the body.
func (r *request) decoded() (content, error) {
	obj, strictErrors, err := r.kind.shape.decode(r.body, r.strict)
	if err == nil && len(strictErrors) > 0 {
		gvk := schema.FromAPIVersionAndKind(text(obj, "apiVersion"), text(obj, "kind"))
		if gvk.Version == "" {
			return nil, apierrors.NewBadRequest("Object 'apiVersion' is missing in 'object has no apiVersion field'")
		}
		err = &decodeError{&gvk, runtime.NewStrictDecodingError(strictErrors)}
	}
	var bad *decodeError
	switch {
	case errors.As(err, &bad):
		if runtime.IsMissingKind(bad.err) && !r.lenient {
			bad.gvk = nil
		}
		must := r.kind.gvk.Kind
		if _, typed := r.kind.shape.(*typedShape); !typed && bad.gvk != nil && bad.gvk.Kind != "" {
			must = bad.gvk.Kind // Of a custom object a server knows no other kind than it says.
		}
		return nil, apierrors.NewBadRequest(bad.message(must, r.body))
	case err != nil:
		return nil, err
	}
	gv, err := schema.ParseGroupVersion(text(obj, "apiVersion"))
	if err != nil || gv != r.kind.groupVersion() {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the API version in the data (%s) does not match the expected API version (%s)", gv, r.kind.groupVersion()))
	}
	if _, typed := r.kind.shape.(*typedShape); typed && text(obj, "kind") != r.kind.gvk.Kind {
		is := text(obj, "kind")
		return nil, apierrors.NewBadRequest(fmt.Sprintf("%s in version %q cannot be handled as a %s: converting to it is not known", is, gv.Version, r.kind.gvk.Kind))
	}
	return obj, nil
}

// message is what the server says of a body that cannot be decoded.
func (e *decodeError) message(kind string, body []byte) string {
	if e.gvk != nil && e.gvk.Kind != "" {
		return fmt.Sprintf("%s in version %q cannot be handled as a %s: %v", e.gvk.Kind, e.gvk.Version, kind, e.err)
	}
	return fmt.Sprintf("the object provided is unrecognized (must be of type %s): %v (%s)", kind, e.err, summary(body))
}

func summary(body []byte) string {
	const most = 30
	if len(body) == 0 {
		return "<empty>"
	}
	if body[0] != '{' {
		return fmt.Sprintf("%q", body[:min(len(body), most)])
	}
	if len(body) > most {
		return string(body[:most]) + " ..."
	}
	return string(body)
}

// matchNamespace fills the namespace of the path in, or refuses another one.
func (r *request) matchNamespace(m content) error {
	switch is := text(m, "namespace"); {
	case is == r.namespace:
		return nil
	case is == "":
		m["namespace"] = r.namespace
		return nil
	case r.namespace == "":
		delete(m, "namespace")
		return nil
	default:
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
}

// createObject does what comes after the field manager. The object's metadata are
// the caller's own.
func (r *request) createObject(obj content) (*stored, error) {
	k := r.kind
	m := ownMetadata(obj)
	m["creationTimestamp"], m["uid"] = r.timestamp(), r.uid()
	if prefix := text(m, "generateName"); prefix != "" && text(m, "name") == "" {
		m["name"] = prefix[:min(len(prefix), 63-5)] + r.suffix()
	}
	if err := r.beforeCreate(obj); err != nil {
		return nil, err
	}
	r.name = text(m, "name")
	if err := r.admit("CREATE", obj, nil); err != nil {
		return nil, err
	}
	if v, err := parseVersion(text(m, "resourceVersion")); err == nil && v != 0 && !r.dryRun && r.verb == "create" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	if there := r.find(k, r.namespace, r.name); there != nil {
		err := apierrors.NewAlreadyExists(k.groupResource(), r.name)
		if text(m, "generateName") != "" {
			err = apierrors.NewGenerateNameConflict(k.groupResource(), r.name, 1)
		}
		if deleting(there.content) {
			err.ErrStatus.Message = "object is being deleted: " + err.ErrStatus.Message
		}
		return nil, err
	}
	if r.dryRun {
		return r.unstored(obj), nil
	}
	if err := r.fit(obj, nil); err != nil {
		return nil, err
	}
	r.noteOwners(obj)
	return r.put(obj), nil
}

// invalid says what is wrong with an object.
func (r *request) invalid(obj content, errs field.ErrorList) error {
	is := schema.FromAPIVersionAndKind(text(obj, "apiVersion"), text(obj, "kind"))
	return apierrors.NewInvalid(is.GroupKind(), nameOf(obj), errs)
}

// beforeCreate prepares and checks a new object.
func (r *request) beforeCreate(obj content) error {
	k := r.kind
	if k.strategy.prepareCreate != nil {
		k.strategy.prepareCreate(obj)
	}
	if errs := k.strategy.validate(obj); len(errs) > 0 {
		return r.invalid(obj, errs)
	}
	if k.strategy.canonicalize != nil {
		k.strategy.canonicalize(obj)
	}
	return nil
}
