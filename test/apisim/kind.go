package apisim

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"k8s.io/apimachinery/pkg/util/managedfields"
)

// content is an object in the form that JSON has in memory. What is stored is
// never written to again: a change is made on a copy of the maps on its path.
type content = map[string]any

// kind is a kind of object as the server serves it.
type kind struct {
	gvk        schema.GroupVersionKind
	resource   string
	singular   string
	listKind   string
	shortNames []string
	categories []string
	namespaced bool

	// status says that there is a subresource of that name.
	status bool
	// createOnUpdate says that a PUT creates an object that does not exist.
	createOnUpdate bool
	// unconditional says that a PUT without a resourceVersion is accepted.
	unconditional bool
	// returnsDeleted says that a deletion answers with the object.
	returnsDeleted bool

	shape    shape
	strategy strategy
	types    managedfields.TypeConverter
	// schemas is the OpenAPI document of the group and version.
	schemas *document
	// versions are those of a custom kind that has several.
	versions *versions
	// selectable are the fields that a field selector may name besides the name and
	// the namespace.
	selectable []string
}

// shape brings what was sent into the form in which it is stored: unknown fields
// are dropped, defaults set.
type shape interface {
	// decode reads a body. The strict errors are unknown and repeated fields, and
	// are looked for only if asked. The error is that of a body that does not fit.
	decode(body []byte, strict bool) (obj content, strictErrors []error, err error)
	// adopt does the same to an object that a patch has put together, and may be built
	// of parts of others, which are not changed. It reports failure where something is
	// wrong or unknown.
	adopt(obj content) (content, bool)
	// normalize does to an object that an apply has put together what a server does. It
	// does not change it.
	normalize(obj content) (content, error)
	// reread returns what a read of a stored object comes to: defaults of what is missing
	// are set then, too. What comes of an apply may have nulls, which are dropped. It
	// does not change the object.
	reread(obj content, applied bool) content
	// empty is the object with no fields set. It must not be changed.
	empty() content
}

// strategy is what a kind does of its own. Any function may be nil. Objects that
// are passed as new may be changed at their top level and in their metadata.
type strategy struct {
	prepareCreate func(obj content)
	prepareUpdate func(obj, old content)
	prepareStatus func(obj, old content)
	validate      func(obj content) field.ErrorList
	validateNew   func(obj, old content) field.ErrorList
	validateState func(obj, old content) field.ErrorList
	canonicalize  func(obj content)
	// reset are the fields that a write drops, without and with the subresource
	// status: nobody comes to own them.
	reset, resetStatus *fieldpath.Set
}

func (k *kind) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: k.gvk.Group, Resource: k.resource}
}

func (k *kind) groupVersion() schema.GroupVersion { return k.gvk.GroupVersion() }
