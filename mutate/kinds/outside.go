package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/fieldmerge"
)

// Outside says how the objects of a kind stand for something outside of the cluster, such as a
// snapshot in a storage, which may be older than they are and which a controller deletes with them.
type Outside struct {
	// Older is where an object names what was there before it. One that names nothing has a
	// controller make something for it.
	Older []string
	// Holder is the resource of the object that is named there. It is cluster-scoped and of the
	// same group; empty where what is named is outside.
	Holder string
	// BoundTo are the places where a holder has the uid of the object that has bound it.
	BoundTo [][]string
	// Remade is what a re-created object gets that names nothing older.
	Remade Loss
}

const (
	snapshots      = "snapshot.storage.k8s.io"
	groupSnapshots = "groupsnapshot.storage.k8s.io"
	buckets        = "objectstorage.k8s.io"
)

var (
	newSnapshot = Loss{"a rollback would take another snapshot, of the data as they are by then", "re-created: another snapshot is taken, of the data as they are now"}
	newBucket   = Loss{"a rollback would make another bucket, which is empty", "re-created: another bucket is made, which is empty"}
)

var outside = map[schema.GroupKind]Outside{
	{Group: snapshots, Kind: "VolumeSnapshot"}: {
		Older: []string{"spec", "source", "volumeSnapshotContentName"}, Holder: "volumesnapshotcontents",
		BoundTo: [][]string{{"spec", "volumeSnapshotRef", "uid"}}, Remade: newSnapshot,
	},
	{Group: snapshots, Kind: "VolumeSnapshotContent"}: {Older: []string{"spec", "source", "snapshotHandle"}, Remade: newSnapshot},
	{Group: groupSnapshots, Kind: "VolumeGroupSnapshot"}: {
		Older: []string{"spec", "source", "volumeGroupSnapshotContentName"}, Holder: "volumegroupsnapshotcontents",
		BoundTo: [][]string{{"spec", "volumeGroupSnapshotRef", "uid"}}, Remade: newSnapshot,
	},
	{Group: groupSnapshots, Kind: "VolumeGroupSnapshotContent"}: {
		Older: []string{"spec", "source", "groupSnapshotHandles", "volumeGroupSnapshotHandle"}, Remade: newSnapshot,
	},
	{Group: buckets, Kind: "BucketClaim"}: {
		Older: []string{"spec", "existingBucketName"}, Holder: "buckets",
		BoundTo: [][]string{{"spec", "bucketClaimRef", "uid"}, {"spec", "bucketClaim", "uid"}}, Remade: newBucket,
	},
	{Group: buckets, Kind: "Bucket"}: {Older: []string{"spec", "existingBucketID"}, Remade: newBucket},
}

// OutsideOf returns how the objects of a kind stand for something outside; false if they are not
// known to.
func OutsideOf(kind schema.GroupKind) (Outside, bool) {
	found, ok := outside[kind]
	return found, ok
}

// OutsideResources are the resources of these kinds, in a namespace or cluster-scoped.
func OutsideResources(namespaced bool) []schema.GroupResource {
	var out []schema.GroupResource
	for kind, known := range outside {
		if (known.Holder != "") == namespaced {
			out = append(out, schema.GroupResource{Group: kind.Group, Resource: strings.ToLower(kind.Kind) + "s"})
		}
	}
	slices.SortFunc(out, func(a, b schema.GroupResource) int { return strings.Compare(a.String(), b.String()) })
	return out
}

// Destroys returns the field of a custom resource which says that its controller destroys with it
// what it stands for; empty if none does. That is a policy of any operator, by the name and value
// that are usual, or what a managed resource of Crossplane says.
func Destroys(obj *unstructured.Unstructured) string {
	spec, _, _ := unstructured.NestedMap(obj.Object, "spec")
	if !fieldmerge.Custom(obj.GroupVersionKind().GroupKind()) {
		return ""
	}
	if _, managed := spec["forProvider"].(map[string]any); managed {
		return destroysManaged(spec)
	}
	var out []string
	for name, value := range spec {
		field := strings.ToLower(name)
		policy, _ := value.(string)
		if (strings.HasSuffix(field, "deletionpolicy") || strings.HasSuffix(field, "reclaimpolicy")) && strings.EqualFold(policy, "Delete") {
			out = append(out, "spec."+name)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return slices.Min(out)
}

// destroysManaged follows the reconciler of crossplane-runtime: a list of actions counts before
// the policy, unless it is that of all.
func destroysManaged(spec map[string]any) string {
	actions, listed := spec["managementPolicies"].([]any)
	switch {
	case listed && slices.Contains(actions, any("Delete")):
		return "spec.managementPolicies"
	case listed && len(actions) > 0 && !slices.Contains(actions, any("*")), spec["deletionPolicy"] == "Orphan":
		return ""
	case spec["deletionPolicy"] != nil:
		return "spec.deletionPolicy"
	case len(actions) > 0:
		return "spec.managementPolicies"
	default:
		return ""
	}
}
