package mutate

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// scaleHarm: a StatefulSet may delete the claims of the Pods that go, no matter who has made them.
// Those that the change has had it make may go.
func (c Change) scaleHarm(ctx context.Context, at moment, live, desired *unstructured.Unstructured) (harm, error) {
	step, deletes := kinds.ScalingOf(live.Object, desired.Object)
	if !deletes {
		return harm{}, nil
	}
	claims, err := c.claimsOf(ctx, live.GetNamespace(), func(name string) bool { return step.Goes(name) || step.Leaving(name) && !at.ahead })
	if err != nil {
		return harm{}, err
	}
	var spared []string
	for i := range claims {
		claim := &claims[i]
		keeps, err := c.keepsClaim(ctx, at, claim)
		switch {
		case err != nil:
			return harm{}, err
		case keeps && !step.Goes(claim.GetName()):
			return harm{}, c.fail(errclass.Retryable, errclass.Terminating, "restore", "waiting until the Pods that it has scaled away are gone: with whenScaled Delete, PersistentVolumeClaim %s would be deleted with them", claim.GetName())
		case keeps:
			spared = append(spared, claim.GetName())
		}
	}
	if len(spared) == 0 {
		return harm{}, nil
	}
	older := " that are older than the change, or whose data is"
	if at.undo {
		older = ""
	}
	return harm{
		fields: [][]string{replicasField, ordinalsField}, reason: errclass.Irreversible,
		what: "scaled back, it would delete PersistentVolumeClaims" + older + " (whenScaled is Delete): " + few(spared),
		hint: "its replicas stay; to keep the claims, set spec.persistentVolumeClaimRetentionPolicy.whenScaled to Retain, then scale it by hand",
	}, nil
}

// keepsClaim reports whether a claim is not for a rollback to have deleted: it is older than the
// change, another client has made it, or its volume would be destroyed with it and is older.
func (c Change) keepsClaim(ctx context.Context, at moment, claim *unstructured.Unstructured) (bool, error) {
	switch {
	case claim.GetDeletionTimestamp() != nil:
		return false, nil
	case at.ahead, at.undo:
		return true, nil
	case c.Environment.OwnerRefs != nil && c.Environment.OwnerRefs.ToBeDeleted(claim.GetUID()):
		return false, nil // Its own Create is rolled back too.
	case claim.GetCreationTimestamp().Time.Before(at.since):
		return true, nil
	}
	theirs, err := c.writtenBelow(claim, ".spec.", ".spec.volumeName")
	if err != nil || theirs {
		return theirs, err
	}
	below := c.at(target.Ref{GVK: claim.GroupVersionKind(), GVR: kinds.Claims, Namespace: claim.GetNamespace(), Name: claim.GetName()})
	if err = below.admitVolume(ctx, claim); errclass.Is(err, errclass.Irreversible) {
		return true, nil
	}
	return false, err
}

// claimsOf lists claims of a namespace by their names.
func (c Change) claimsOf(ctx context.Context, namespace string, named func(string) bool) ([]unstructured.Unstructured, error) {
	var out []unstructured.Unstructured
	options := metav1.ListOptions{Limit: 500}
	for {
		list, err := c.Environment.Cluster.Resource(kinds.Claims).Namespace(namespace).List(ctx, options)
		if err != nil {
			err = errclass.Wrap(err, "list", "the PersistentVolumeClaims of the namespace", false)
			if errclass.Is(err, errclass.AccessDenied) {
				return nil, c.fail(errclass.Terminal, errclass.AccessDenied, "restore", "whether claims would be deleted that were there before cannot be told: the ServiceAccount may not list persistentvolumeclaims").
					WithHint("grant it list on persistentvolumeclaims, or scale it by hand")
			}
			return nil, err
		}
		for _, claim := range list.Items {
			if named(claim.GetName()) {
				out = append(out, claim)
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return out, nil
		}
	}
}
