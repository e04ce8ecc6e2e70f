package apisim

import (
	"bytes"
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// metadataOnly says that the client wants no more than the metadata.
func metadataOnly(req *http.Request) bool {
	return strings.Contains(req.Header.Get("Accept"), "as=PartialObjectMetadata")
}

// get answers a GET of one object.
func (r *request) get(req *http.Request) *http.Response {
	found := r.find(r.kind, r.namespace, r.name)
	if found == nil {
		return failed(req, apierrors.NewNotFound(r.kind.groupResource(), r.name))
	}
	return r.object(req, http.StatusOK, found)
}

// object answers with an object, or with its metadata.
func (r *request) object(req *http.Request, code int, o *stored) *http.Response {
	if !metadataOnly(req) {
		return rawAnswer(req, code, o.encoded())
	}
	return rawAnswer(req, code, encode(partial(o.content)))
}

func partial(obj content) content {
	return content{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": obj["metadata"]}
}

// list answers a GET of all objects that are selected.
func (r *request) list(req *http.Request) *http.Response {
	selected, err := r.selector()
	if err != nil {
		return failed(req, err)
	}
	var items []*stored
	for _, o := range r.tables[r.kind.groupResource()].sorted() {
		o = o.as(r.kind)
		if (r.namespace == "" || namespaceOf(o.content) == r.namespace) && selected.matches(o.content) {
			items = append(items, o)
		}
	}
	return r.listOf(req, items)
}

func (r *request) listOf(req *http.Request, items []*stored) *http.Response {
	var out bytes.Buffer
	kind, version := r.kind.listKind, r.kind.groupVersion().String()
	if metadataOnly(req) {
		kind, version = "PartialObjectMetadataList", "meta.k8s.io/v1"
	}
	out.WriteString(`{"kind":"` + kind + `","apiVersion":"` + version + `","metadata":{"resourceVersion":"` + strconv.FormatUint(r.version, 10) + `"},"items":[`)
	for i, o := range items {
		if i > 0 {
			out.WriteByte(',')
		}
		item := o.content
		switch _, typed := r.kind.shape.(*typedShape); {
		case metadataOnly(req):
			item = partial(o.content)
		case typed:
			item = maps.Clone(item)
			delete(item, "apiVersion")
			delete(item, "kind")
		default:
			out.Write(o.encoded())
			continue
		}
		out.Write(encode(item))
	}
	out.WriteString("]}\n")
	return rawAnswer(req, http.StatusOK, out.Bytes())
}

// sorted returns the objects of a table by namespace and name, as etcd does.
func (t table) sorted() []*stored {
	out := make([]*stored, 0, len(t))
	for _, o := range t {
		out = append(out, o)
	}
	slices.SortFunc(out, func(a, b *stored) int {
		return cmp.Or(cmp.Compare(namespaceOf(a.content), namespaceOf(b.content)), cmp.Compare(nameOf(a.content), nameOf(b.content)))
	})
	return out
}

func sortedResources(tables map[schema.GroupResource]table) []schema.GroupResource {
	out := make([]schema.GroupResource, 0, len(tables))
	for gr := range tables {
		out = append(out, gr)
	}
	slices.SortFunc(out, func(a, b schema.GroupResource) int { return cmp.Compare(a.String(), b.String()) })
	return out
}

// selector says which objects a request is about.
type selector struct {
	labels     labels.Selector
	fields     fields.Selector
	selectable []string
}

func (r *request) selector() (selector, error) {
	s := selector{labels: labels.Everything(), fields: fields.Everything(), selectable: r.kind.selectable}
	var err error
	if text := r.query.Get("labelSelector"); text != "" {
		if s.labels, err = labels.Parse(text); err != nil {
			return s, apierrors.NewBadRequest(err.Error())
		}
	}
	if text := r.query.Get("fieldSelector"); text != "" {
		if s.fields, err = fields.ParseSelector(text); err != nil {
			return s, apierrors.NewBadRequest(err.Error())
		}
	}
	for _, requirement := range s.fields.Requirements() {
		if f := requirement.Field; f != "metadata.name" && f != "metadata.namespace" && !slices.Contains(r.kind.selectable, f) {
			return s, apierrors.NewBadRequest("field label not supported: " + f)
		}
	}
	return s, nil
}

func (s selector) matches(obj content) bool {
	if !s.fields.Empty() {
		set := fields.Set{"metadata.name": nameOf(obj), "metadata.namespace": namespaceOf(obj)}
		for _, path := range s.selectable {
			set[path] = at(obj, path)
		}
		if !s.fields.Matches(set) {
			return false
		}
	}
	return s.labels.Empty() || s.labels.Matches(labels.Set(accessor(obj).GetLabels()))
}

// at returns the text at a path of names with dots between them.
func at(obj content, path string) string {
	for {
		name, rest, more := strings.Cut(path, ".")
		if !more {
			return text(obj, name)
		}
		obj, _ = obj[name].(content)
		path = rest
	}
}
