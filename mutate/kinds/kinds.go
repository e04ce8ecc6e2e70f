package kinds

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/target"
)

// Kind is what is special about the objects of a kind.
type Kind struct {
	// Loss is what goes with an object for good when it is deleted; nil for nothing.
	Loss *Loss
	// Workload says that a deletion takes Pods along, unless they are orphaned.
	Workload bool
	// NamedByContent says that no other name would do for the same content.
	NamedByContent bool
	// Adopts is what the controller of the kind adopts if it is there already, and takes up again
	// if it was orphaned.
	Adopts []schema.GroupVersionResource
	// Deletes says what controllers delete, or end, because of the step from before to after; nil
	// for nothing.
	Deletes func(before, after map[string]any) []Consequence
}

// Loss is what a before-image does not hold of a kind: in advance, and once the
// object has been re-created.
type Loss struct{ Ahead, After string }

// table has the kinds that are special. The steps that nobody can undo are in doors.
var table = map[schema.GroupKind]Kind{
	target.NamespaceKind: {Loss: &Loss{"everything in it would be lost", "re-created empty: what was in it is lost"}},
	target.CRDKind:       {Loss: &Loss{"every object of its kind would be lost", "re-created: the objects of its kind are lost"}},
	{Kind: "Node"}: {
		Loss:    &Loss{"its Pods would be lost, and it registers itself again", "re-created: its Pods and what its kubelet reported are lost"},
		Deletes: evictedPods,
	},
	Volume:                              {Deletes: reclaimedData},
	Service:                             {Deletes: givenBack},
	{Kind: "ReplicationController"}:     {Workload: true, Adopts: []schema.GroupVersionResource{pods}},
	{Group: "apps", Kind: "Deployment"}: {Workload: true, Adopts: []schema.GroupVersionResource{replicaSets, pods}, Deletes: fewerRevisions},
	{Group: "apps", Kind: "ReplicaSet"}: {Workload: true, Adopts: []schema.GroupVersionResource{pods}},
	StatefulSet:                         {Workload: true, Adopts: []schema.GroupVersionResource{pods, Claims, revisions}, Deletes: scaledAway},
	{Group: "apps", Kind: "DaemonSet"}:  {Workload: true, Adopts: []schema.GroupVersionResource{pods, revisions}, Deletes: fewerRevisions},
	{Group: "batch", Kind: "CronJob"}:   {Workload: true, Deletes: fewerJobs},
	Job: {
		Loss:     &Loss{"its Pods would be lost, and re-created it would run again", "re-created: it runs again from the start"},
		Workload: true, Adopts: []schema.GroupVersionResource{pods}, Deletes: finishedJob,
	},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {
		Loss: &Loss{"its approval and its certificate would be lost", "re-created: its approval and its certificate are lost"},
	},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}: {NamedByContent: true},
	{Group: "networking.k8s.io", Kind: "IPAddress"}:       {NamedByContent: true},
}

// Of returns what is special about a kind; the zero Kind for nothing.
func Of(kind schema.GroupKind) Kind { return table[kind] }

// Adopts returns what the controllers of a kind adopt. What it is for a kind that is not of
// Kubernetes only its operator knows: anything, then.
func Adopts(kind schema.GroupKind) (known []schema.GroupVersionResource, anything bool) {
	return Of(kind).Adopts, fieldmerge.Custom(kind)
}

// BySelector tells whether a resource is adopted by the labels that the owner selects.
func BySelector(gvr schema.GroupVersionResource) bool { return gvr != Claims }
