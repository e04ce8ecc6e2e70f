package wiring

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
	"janus.io/janus/mutate/kinds"
)

// page is how many objects are listed in one request.
const page = 500

var (
	claims = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	// irreplaceable are the cluster-scoped kinds of which no other can take the place.
	irreplaceable = []schema.GroupVersionResource{
		{Version: "v1", Resource: "persistentvolumes"}, {Version: "v1", Resource: "namespaces"},
		{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	}
)

// dependantsOf returns, for a kind that may own what was there before, or what cannot be made
// again, the function that looks for that, as the ServiceAccount and by metadata alone. It
// is nil for every other kind, of which nothing is asked.
func (s session) dependantsOf(ref target.Ref) func(context.Context, *unstructured.Unstructured, mutate.Wanted) (mutate.Dependants, error) {
	known, anything := kinds.Adopts(ref.GVK.GroupKind())
	if len(known) == 0 && !anything || s.id.Metadata == nil {
		return nil
	}
	return func(ctx context.Context, live *unstructured.Unstructured, wanted mutate.Wanted) (mutate.Dependants, error) {
		look := &search{session: s, ref: ref, known: map[types.UID]bool{live.GetUID(): true}, unseen: map[string]bool{}, ownerless: map[types.UID]mutate.Dependant{}}
		resources, err := look.resources(known, wanted)
		if err != nil {
			return mutate.Dependants{}, err
		}
		selector := ""
		if len(known) > 0 && wanted == mutate.Everything {
			selector = selectorOf(live)
		}
		return look.run(ctx, resources, selector)
	}
}

// search looks for objects that have owners.
type search struct {
	session
	ref    target.Ref
	found  mutate.Dependants
	known  map[types.UID]bool
	unseen map[string]bool
	// ownerless are those that were listed and have no owner themselves.
	ownerless map[types.UID]mutate.Dependant
}

// resources are those that are listed. What a namespaced object owns is in its namespace;
// below one of the cluster only claims are looked for in all namespaces.
func (s *search) resources(known []schema.GroupVersionResource, wanted mutate.Wanted) ([]schema.GroupVersionResource, error) {
	switch {
	case wanted == mutate.Irreplaceable && s.ref.Namespace != "":
		outside, err := s.outside()
		return append(outside, claims), err
	case wanted == mutate.Irreplaceable:
		outside, err := s.outside()
		return append(append(outside, irreplaceable...), claims), err
	case len(known) > 0:
		return known, nil
	}
	all, err := s.resolver.Listable(s.ref.Namespace != "")
	if s.ref.Namespace == "" {
		all = append(all, claims)
	}
	return all, err
}

// outside are those of what stands for something outside, as far as they are served: in its
// namespace, or cluster-scoped and in all namespaces. They are looked for below what may own
// anything.
func (s *search) outside() ([]schema.GroupVersionResource, error) {
	if _, anything := kinds.Adopts(s.ref.GVK.GroupKind()); !anything {
		return nil, nil
	}
	all := kinds.OutsideResources(true)
	if s.ref.Namespace == "" {
		all = append(all, kinds.OutsideResources(false)...)
	}
	var out []schema.GroupVersionResource
	for _, resource := range all {
		gvr, err := s.resolver.Served(objectid.ID{Group: resource.Group, Resource: resource.Resource})
		switch {
		case errclass.Is(err, errclass.KindNotFound):
		case err != nil:
			return nil, err
		default:
			out = append(out, gvr)
		}
	}
	return out, nil
}

func (s *search) run(ctx context.Context, resources []schema.GroupVersionResource, selector string) (mutate.Dependants, error) {
	lists, errs := make([][]mutate.Dependant, len(resources)), make([]error, len(resources))
	fanout.Do(s.parallel, len(resources), func(n int) {
		options := metav1.ListOptions{Limit: page}
		if kinds.BySelector(resources[n]) {
			options.LabelSelector = selector
		}
		lists[n], errs[n] = s.list(ctx, resources[n], options)
	})
	for n, err := range errs {
		switch {
		case errclass.Is(err, errclass.AccessDenied):
			s.unseen[resources[n].GroupResource().String()] = true
		case err != nil:
			return mutate.Dependants{}, err
		}
		for _, d := range lists[n] {
			if len(d.OwnerReferences) == 0 {
				s.ownerless[d.UID] = d
				continue
			}
			s.add(d)
		}
	}
	if err := s.walkUp(ctx, resources); err != nil {
		return mutate.Dependants{}, err
	}
	for name := range s.unseen {
		s.found.Unseen = append(s.found.Unseen, name)
	}
	slices.Sort(s.found.Unseen)
	return s.found, nil
}

func (s *search) add(d mutate.Dependant) {
	if !s.known[d.UID] {
		s.known[d.UID] = true
		s.found.All = append(s.found.All, d)
	}
}

// list returns the objects of a resource. One that is not served has none.
func (s *search) list(ctx context.Context, gvr schema.GroupVersionResource, options metav1.ListOptions) ([]mutate.Dependant, error) {
	client := s.id.Metadata.Resource(gvr)
	kind := s.resolver.Kind(gvr)
	var out []mutate.Dependant
	for {
		list, err := client.Namespace(s.ref.Namespace).List(ctx, options) // None means all of them, or those of the cluster.
		if errclass.Is(err, errclass.NotFound) || errclass.Is(err, errclass.Invalid) {
			return out, nil
		}
		if err != nil {
			return nil, errclass.Wrap(err, "look for what it owns, list", gvr.GroupResource().String(), false)
		}
		for i := range list.Items {
			obj := &list.Items[i]
			obj.Kind = kind // The answer says no more than that it is metadata.
			if len(obj.OwnerReferences) == 0 {
				obj.ManagedFields = nil // They tell who has made it an owner's.
			}
			out = append(out, mutate.Dependant{GVR: gvr, PartialObjectMetadata: obj})
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return out, nil
		}
	}
}

// walkUp adds the owners of what was found, and theirs: between the target and what it owns there
// may be anything, and what has another owner stays with that one. Those of kinds that were not
// listed are read.
func (s *search) walkUp(ctx context.Context, listed []schema.GroupVersionResource) error {
	asked := map[types.UID]bool{}
	for n := 0; n < len(s.found.All); n++ {
		d := s.found.All[n]
		for _, owner := range d.OwnerReferences {
			if s.known[owner.UID] || asked[owner.UID] {
				continue
			}
			asked[owner.UID] = true
			if d, listed := s.ownerless[owner.UID]; listed {
				s.add(d)
				continue
			}
			if err := s.owner(ctx, owner, d.Namespace, listed); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *search) owner(ctx context.Context, owner metav1.OwnerReference, namespace string, listed []schema.GroupVersionResource) error {
	ref, err := s.resolver.ResolveOwner(owner, namespace)
	if errclass.Is(err, errclass.KindNotFound) || errclass.Is(err, errclass.Invalid) {
		return nil // The garbage collector knows no such owner either.
	}
	if err != nil {
		return err
	}
	of := ref.GVR.GroupResource() // The reference may name another version.
	seen := slices.ContainsFunc(listed, func(gvr schema.GroupVersionResource) bool { return gvr.GroupResource() == of }) && !s.unseen[of.String()]
	if seen || s.ref.Namespace != "" && ref.Namespace == "" {
		return nil // It is gone, or cannot be below the target.
	}
	live, err := s.id.Metadata.Resource(ref.GVR).Namespace(ref.Namespace).Get(ctx, owner.Name, metav1.GetOptions{})
	switch {
	case errclass.Is(err, errclass.NotFound) || errclass.Is(err, errclass.NamespaceNotFound):
		return nil
	case errclass.Is(err, errclass.AccessDenied):
		s.unseen[of.String()] = true
		return nil
	case err != nil:
		return errclass.Wrap(err, "read the owner", ref.String(), false)
	case live.UID == owner.UID:
		live.Kind = ref.GVK.Kind
		s.add(mutate.Dependant{GVR: ref.GVR, PartialObjectMetadata: live})
	}
	return nil
}

// selectorOf is the selector of a workload, by which it adopts; empty for all.
func selectorOf(live *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedMap(live.Object, "spec", "selector")
	if _, labels := spec["matchLabels"].(map[string]any); !labels && spec["matchExpressions"] == nil {
		spec = map[string]any{"matchLabels": spec} // That of a ReplicationController.
	}
	selector, err := decodeSelector(spec)
	if err != nil {
		return ""
	}
	parsed, err := metav1.LabelSelectorAsSelector(selector)
	if err != nil {
		return ""
	}
	return parsed.String()
}

func decodeSelector(spec map[string]any) (*metav1.LabelSelector, error) {
	var out metav1.LabelSelector
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(spec, &out); err != nil {
		return nil, fmt.Errorf("decode a selector: %w", err)
	}
	return &out, nil
}

// unlistable warns of what the ServiceAccount would have to list for an object that it makes
// to be deleted again: what that has adopted by then must not go with it.
func (s session) unlistable(ctx context.Context, ref target.Ref) ([]string, error) {
	known, _ := kinds.Adopts(ref.GVK.GroupKind())
	var missing []string
	for _, gvr := range known {
		ok, err := s.allowed(ctx, target.Ref{GVR: gvr, Namespace: ref.Namespace}, "list", map[question]bool{})
		if err != nil {
			return nil, err
		}
		if !ok {
			missing = append(missing, gvr.GroupResource().String())
		}
	}
	if len(missing) == 0 {
		return nil, nil
	}
	return []string{fmt.Sprintf("%s: a rollback would keep it, because the ServiceAccount may not list %s: whether it has adopted some could not be told",
		ref, strings.Join(missing, ", "))}, nil
}
