package apisim

import (
	"fmt"
	"maps"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// delete answers a DELETE of one object.
func (r *request) delete() (int, outcome, error) {
	options, err := r.deleteOptions()
	if err != nil {
		return 0, outcome{}, err
	}
	out, err := r.deleteObject(options)
	if err != nil {
		return 0, outcome{}, err
	}
	code := http.StatusOK
	//nolint:staticcheck // old clients still send the field
	if out.object != nil && !out.gone && options.OrphanDependents != nil && !*options.OrphanDependents {
		code = http.StatusAccepted
	}
	return code, out.outcome, nil
}

// deletion is what a deletion has come to.
type deletion struct {
	outcome
	gone bool
}

func (r *request) deleteOptions() (*metav1.DeleteOptions, error) {
	options := &metav1.DeleteOptions{}
	if len(r.body) > 0 {
		if err := decodeInto(r.body, options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	} else if err := metav1.Convert_url_Values_To_v1_DeleteOptions(&r.query, options, nil); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	r.dryRun = len(options.DryRun) > 0
	return options, nil
}

func (r *request) deleteObject(options *metav1.DeleteOptions) (deletion, error) {
	old := r.find(r.kind, r.namespace, r.name)
	if old == nil {
		return deletion{}, apierrors.NewNotFound(r.kind.groupResource(), r.name)
	}
	if r.kind == r.kinds[namespaces] {
		if done, out, err := r.deleteNamespace(old, options); done || err != nil {
			return out, err
		}
	}
	if err := r.meets(old.content, options.Preconditions); err != nil {
		return deletion{}, err
	}
	if err := r.admit("DELETE", nil, old.content); err != nil {
		return deletion{}, err
	}
	finalizers := finalizersFor(finalizersOf(old.content), options)
	if len(finalizers) > 0 {
		return deletion{outcome: outcome{object: r.mark(old, finalizers)}}, nil
	}
	if r.dryRun && len(finalizersOf(old.content)) > 0 {
		// A server has nothing to show of an object whose finalizers would go with it.
		return deletion{outcome{object: &stored{kind: r.kind, content: r.kind.shape.empty()}}, true}, nil
	}
	gone := old
	if !r.dryRun {
		gone = r.remove(old, r.user)
		r.dirty = true
	}
	return deletion{r.deleted(gone), true}, nil
}

// deleted is what is answered about an object that is gone.
func (r *request) deleted(gone *stored) outcome {
	if r.kind.returnsDeleted {
		return outcome{object: gone}
	}
	return outcome{status: &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess,
		Details: &metav1.StatusDetails{Name: r.name, Group: r.kind.gvk.Group, Kind: r.kind.resource, UID: accessor(gone.content).GetUID()},
	}}
}

// meets compares an object with the preconditions of its deletion.
func (r *request) meets(obj content, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	gr := schema.GroupResource{Group: r.kind.gvk.Group, Resource: r.kind.gvk.Kind}
	if is := uidOf(obj); p.UID != nil && string(*p.UID) != is {
		return apierrors.NewConflict(gr, r.name, fmt.Errorf("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, is))
	}
	if is := versionOf(obj); p.ResourceVersion != nil && *p.ResourceVersion != is {
		return apierrors.NewConflict(gr, r.name, fmt.Errorf("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, is))
	}
	return nil
}

// finalizersFor are the finalizers of an object that is being deleted: those of the
// garbage collector follow the propagation that was asked for.
func finalizersFor(has []string, options *metav1.DeleteOptions) []string {
	orphan, foreground := propagation(has, options)
	out := make([]string, 0, len(has)+1)
	for _, f := range has {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			out = append(out, f)
		}
	}
	if orphan {
		out = append(out, metav1.FinalizerOrphanDependents)
	}
	if foreground {
		out = append(out, metav1.FinalizerDeleteDependents)
	}
	if sameSet(out, has) {
		return has
	}
	return out
}

func sameSet(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(slices.Compact(a), slices.Compact(b))
}

func propagation(has []string, options *metav1.DeleteOptions) (orphan, foreground bool) {
	//nolint:staticcheck // old clients still send the field
	if options.OrphanDependents != nil {
		return *options.OrphanDependents, false
	}
	if p := options.PropagationPolicy; p != nil {
		return *p == metav1.DeletePropagationOrphan, *p == metav1.DeletePropagationForeground
	}
	for _, f := range has {
		switch f {
		case metav1.FinalizerOrphanDependents:
			return true, false
		case metav1.FinalizerDeleteDependents:
			return false, true
		}
	}
	return false, false
}

// mark says of an object with finalizers that it is being deleted.
func (r *request) mark(old *stored, finalizers []string) *stored {
	obj := maps.Clone(old.content)
	m := ownMetadata(obj)
	setFinalizers(m, finalizers)
	if generation := generationOf(obj); m["deletionTimestamp"] == nil && generation > 0 {
		m["generation"] = generation + 1
	}
	if m["deletionTimestamp"] == nil {
		m["deletionTimestamp"] = r.timestamp()
	}
	m["deletionGracePeriodSeconds"] = int64(0)
	// By another version an object is stored again without what that does not have.
	if equalExcept(m, metadata(old.content)) && equalExcept(converted(obj, r.kind.stores()), old.raw, "metadata") {
		return old
	}
	if r.dryRun {
		return r.unstored(obj)
	}
	r.dirty = true
	return r.put(obj)
}

// deleteCollection answers a DELETE of all objects that are selected.
func (r *request) deleteCollection(req *http.Request) *http.Response {
	options, err := r.deleteOptions()
	if err != nil {
		return failed(req, err)
	}
	selected, err := r.selector()
	if err != nil {
		return failed(req, err)
	}
	var items []*stored
	for _, o := range r.table(r.kind).sorted() {
		o = o.as(r.kind)
		if r.namespace != "" && namespaceOf(o.content) != r.namespace || !selected.matches(o.content) {
			continue
		}
		items = append(items, o)
		one := *r
		one.verb, one.name, one.namespace = "delete", nameOf(o.content), namespaceOf(o.content)
		if _, err := one.deleteObject(options); err != nil && !apierrors.IsNotFound(err) {
			return failed(req, err)
		}
	}
	return r.listOf(req, items)
}
