package wiring

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

const (
	// fewestListed is for how many targets of a kind in a namespace one list is worth more than
	// a read of each.
	fewestListed = 3
	// mostListed is how many objects there may be, or longest times as many as are asked for.
	// Where there are more, the targets are read one by one.
	mostListed = 500
	longest    = 4
)

// listing has the versions of all objects of some kinds in some namespaces. It tells of many
// targets at once that they do not exist, or are as they were read before.
type listing map[place]map[string]mutate.Version

// place is where objects are listed. It is the question whether that is allowed.
type place = question

func placeOf(ref target.Ref) place { return questionAbout(ref, "list") }

// versionOf returns the version of a target, the zero value if it does not exist. It is not known
// of what was not listed.
func (l listing) versionOf(ref target.Ref) (v mutate.Version, known bool) {
	all, known := l[placeOf(ref)]
	return all[ref.Name], known
}

// earlier is what is known of targets before they are read.
type earlier struct {
	tries  *tries
	listed listing
}

// before returns a target that need not be read: one that is as it was when its change was tried, or
// that does not exist. One list alone that lacks a target is not believed, unless that is to be
// created: then the API server has the last word.
func (e earlier) before(i int, ref target.Ref, created bool) (before *unstructured.Unstructured, known bool) {
	v, listed := e.listed.versionOf(ref)
	if !listed {
		return nil, false
	}
	if v == (mutate.Version{}) {
		_, absent := e.tries.at(i, v)
		return nil, absent || created
	}
	return e.tries.before(i, v)
}

// worthListing are those of some items whose targets a list may spare a read each.
func (s session) worthListing(items []int, known *tries) []int {
	var out []int
	for _, i := range items {
		if known.has(i) || plan.ChangeOf(s.txn, i).Type == api.Create {
			out = append(out, i)
		}
	}
	return out
}

// list lists the metadata of the kinds and namespaces in which several of the targets are, where
// the ServiceAccount may. Nothing depends on it but the number of requests: what cannot be listed
// is read.
func (s session) list(ctx context.Context, items []int) listing {
	wanted := map[place]int{}
	for _, i := range items {
		if ref, err := refOf(s.txn.Status.Items[i]); err == nil {
			wanted[placeOf(ref)]++
		}
	}
	var places []place
	for p, n := range wanted {
		if n >= fewestListed && s.id.Metadata != nil {
			places = append(places, p)
		}
	}
	found := make([]map[string]mutate.Version, len(places))
	fanout.Do(s.parallel, len(places), func(n int) { found[n] = s.listAt(ctx, places[n], wanted[places[n]]) })
	out := listing{}
	for n, p := range places {
		if found[n] != nil {
			out[p] = found[n]
		}
	}
	return out
}

// listAt lists the objects of one kind in one namespace, nil if that may not be or they are too
// many.
func (s session) listAt(ctx context.Context, p place, wanted int) map[string]mutate.Version {
	may, known := s.rights.answered(s.id.UID, p)
	if !known {
		var err error
		if may, err = s.ask(ctx, p); err != nil {
			return nil
		}
	}
	if !may {
		return nil
	}
	gvr := schema.GroupVersionResource{Group: p.group, Version: p.version, Resource: p.resource}
	list, err := s.id.Metadata.Resource(gvr).Namespace(p.namespace).List(ctx, metav1.ListOptions{Limit: int64(max(mostListed, longest*wanted))})
	if err != nil {
		return nil
	}
	if list.Continue != "" {
		s.rights.note(s.id.UID, p, false) // For a while it is not tried again.
		return nil
	}
	out := make(map[string]mutate.Version, len(list.Items))
	for i := range list.Items {
		out[list.Items[i].Name] = mutate.Version{UID: list.Items[i].UID, ResourceVersion: list.Items[i].ResourceVersion}
	}
	return out
}
