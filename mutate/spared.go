package mutate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/mutate/kinds"
)

// A rollback that writes an old value may have a controller destroy something for good: the
// data of a volume that was released since, claims that are older than a scale-up. Such a
// field keeps its value, whatever the change accepts and however conflicts are resolved.

// harm is what controllers would destroy for good because fields get their old values.
type harm struct {
	fields [][]string
	// reason is AccessDenied if it cannot be told whether anything is destroyed.
	reason, what, hint string
}

// moment is when a step back is looked at.
type moment struct {
	// ahead is set before the change is made: all that is there is older.
	ahead bool
	// undo is set for the undo of a change that has committed: all that is there stays.
	undo bool
	// since is when the change was made, by the clock of the API server where that is known.
	since time.Time
}

// risk is a field, or some, of a kind whose old value may do harm.
type risk struct {
	fields [][]string
	// look finds out whether the step from live to desired does.
	look func(c Change, ctx context.Context, at moment, live, desired *unstructured.Unstructured) (harm, error)
}

var (
	policyField     = []string{"spec", "persistentVolumeReclaimPolicy"}
	claimRefField   = []string{"spec", "claimRef"}
	replicasField   = []string{"spec", "replicas"}
	ordinalsField   = []string{"spec", "ordinals"}
	whenScaledField = []string{"spec", "persistentVolumeClaimRetentionPolicy"}
	endFields       = [][]string{{"spec", "ttlSecondsAfterFinished"}, {"spec", "activeDeadlineSeconds"}, {"spec", "backoffLimit"}}
	selectorField   = []string{"spec", "selector"}
	ownersField     = []string{"metadata", "ownerReferences"}
)

var risks = map[schema.GroupKind]risk{
	kinds.Volume:      {[][]string{policyField, claimRefField}, Change.reclaimHarm},
	kinds.StatefulSet: {[][]string{replicasField, ordinalsField, whenScaledField}, Change.scaleHarm},
	kinds.Job:         {endFields, Change.endHarm},
	kinds.Service:     {[][]string{selectorField}, Change.selectorHarm},
}

// ownersRisk is that of every kind.
var ownersRisk = risk{[][]string{ownersField}, Change.ownersHarm}

// harms lists what the step from live to desired would have controllers destroy for good.
func (c Change) harms(ctx context.Context, at moment, live, desired *unstructured.Unstructured) ([]harm, error) {
	var out []harm
	for _, r := range c.risks() {
		if !fieldmerge.Differ(live, desired, r.fields...) {
			continue
		}
		found, err := r.look(c, ctx, at, live, desired)
		if errclass.Is(err, errclass.AccessDenied) {
			found, err = untold(r, err), nil
		}
		if err != nil {
			return nil, err
		}
		if found.what != "" {
			out = append(out, found)
		}
	}
	return out, nil
}

func (c Change) risks() []risk {
	if of, known := risks[c.Ref.GVK.GroupKind()]; known {
		return []risk{of, ownersRisk}
	}
	return []risk{ownersRisk}
}

// untold is what cannot be told because the ServiceAccount may not look.
func untold(r risk, denied error) harm {
	out := harm{fields: r.fields, reason: errclass.AccessDenied, what: denied.Error(), hint: "grant it the right, or restore the field by hand"}
	var own *errclass.Error
	if errors.As(denied, &own) && own.Err != nil {
		out.what, out.hint = own.Err.Error(), cmp.Or(own.Hint, out.hint)
	}
	return out
}

// madeAt is when the change was made, as the API server has noted it on the target.
func (c Change) madeAt(e Effect, live *unstructured.Unstructured) moment {
	at := moment{since: e.Began}
	noted := false
	for _, entry := range live.GetManagedFields() {
		if c.Names.ours(entry.Manager) && entry.Time != nil && (!noted || entry.Time.Time.Before(at.since)) {
			at.since, noted = entry.Time.Time, true
		}
	}
	return at
}

// spare gives the fields of desired that would do harm the value that they have. Where an
// earlier call has restored all others, it has spared those that are not restored.
func (c Change) spare(ctx context.Context, e Effect, live, desired *unstructured.Unstructured, so *restoring, earlier bool) error {
	var err error
	if so.restored == nil || earlier {
		if so.harms, err = c.harms(ctx, c.madeAt(e, live), live, desired); err != nil {
			return err
		}
	}
	so.spared = nil
	for _, h := range so.harms {
		so.spared = together(so.spared, fieldmerge.Keep(desired, live, h.fields...))
	}
	for _, r := range c.risks() {
		if earlier && fieldmerge.Differ(live, desired, r.fields...) {
			so.harms = append(so.harms, harm{fields: r.fields, reason: errclass.Irreversible, what: "it was spared when the other fields were restored", hint: "restore it by hand"})
			so.spared = together(so.spared, fieldmerge.Keep(desired, live, r.fields...))
		}
	}
	return nil
}

// sparing is the error of a target of which fields were spared.
func (c Change) sparing(so *restoring) *errclass.Error {
	var whats, hints []string
	reason := so.harms[0].reason
	for _, h := range so.harms {
		whats, hints = append(whats, h.what), append(hints, h.hint)
		if h.reason == errclass.AccessDenied {
			reason = h.reason // The right may come.
		}
	}
	err := c.fail(errclass.Terminal, reason, "restore", "%s", strings.Join(whats, "; ")).WithHint(strings.Join(hints, "; "))
	err.Fields = c.fields(so.spared)
	return err
}

// reclaimHarm: a volume whose claim is gone is destroyed unless it is retained.
func (c Change) reclaimHarm(ctx context.Context, at moment, live, desired *unstructured.Unstructured) (harm, error) {
	policy, holder := reclaimPolicy(desired), claimRef(desired)
	retained := reclaimPolicy(live) == kinds.Retain
	if policy == kinds.Retain || holder["uid"] == "" || !retained && claimRef(live)["uid"] == holder["uid"] {
		return harm{}, nil
	}
	name := holder["namespace"] + "/" + holder["name"]
	if at.undo && c.Environment.creates(kinds.Claim, holder["namespace"], holder["name"]) {
		return harm{}, c.fail(errclass.Terminal, errclass.OwnerGone, "undo the change of", "PersistentVolumeClaim %s/%s is created by an earlier change", holder["namespace"], holder["name"])
	}
	claim, err := c.claimOf(ctx, holder)
	switch {
	case errclass.Is(err, errclass.AccessDenied):
		if phase, _, _ := unstructured.NestedString(live.Object, "status", "phase"); phase == "Bound" {
			return harm{}, nil
		}
	case err != nil:
		return harm{}, err
	case claim != nil && claim.GetDeletionTimestamp() == nil:
		return harm{}, nil
	}
	out := harm{
		fields: [][]string{policyField}, reason: errclass.Irreversible,
		what: fmt.Sprintf("PersistentVolumeClaim %s, which had bound it, has been deleted since, and its data would be deleted with the reclaim policy %s", errclass.Printable(name), policy),
		hint: "it stays as it is; if the data may go, delete the volume or set the policy by hand",
	}
	if !retained {
		out.fields = [][]string{claimRefField}
	}
	return out, nil
}

// writtenBelow reports whether a client that is not the control plane owns a field below a path.
func (c Change) writtenBelow(obj *unstructured.Unstructured, path string, but ...string) (bool, error) {
	found, err := fieldmerge.Foreign(obj, fieldmerge.ControlPlane)
	if err != nil {
		return false, c.unreadableOwners(err)
	}
	return slices.ContainsFunc(found, func(f fieldmerge.FieldConflict) bool {
		return strings.HasPrefix(f.Path, path) && !slices.Contains(but, f.Path)
	}), nil
}

// endHarm: a Job that has finished is deleted once its time to live is over, and one that runs fails
// once it has run for too long or failed too often.
func (c Change) endHarm(_ context.Context, _ moment, live, desired *unstructured.Unstructured) (harm, error) {
	if forGood, _ := c.deletes(live, desired); forGood != "" {
		return harm{
			fields: endFields, reason: errclass.Irreversible, what: "with its old values, " + forGood,
			hint: "it stays as it is; if the Job may go, delete it or set the field by hand",
		}, nil
	}
	return harm{}, nil
}

// selectorHarm: the control plane overwrites the Endpoints of a Service that selects Pods again.
func (c Change) selectorHarm(ctx context.Context, _ moment, live, desired *unstructured.Unstructured) (harm, error) {
	what, err := c.overwritten(ctx, live, desired)
	if err != nil || what == "" {
		return harm{}, err
	}
	return harm{
		fields: [][]string{selectorField}, reason: errclass.Irreversible, what: what,
		hint: "they stay, and it selects nothing; if they may go, set the selector by hand",
	}, nil
}

// ownersHarm: the garbage collector deletes an object all of whose owners are gone. One that the
// rollback creates again later is waited for.
func (c Change) ownersHarm(ctx context.Context, _ moment, _, desired *unstructured.Unstructured) (harm, error) {
	var gone []string
	for _, owner := range desired.GetOwnerReferences() {
		if c.Environment.OwnerRefs == nil {
			return harm{}, nil
		}
		uid, known, err := c.Environment.OwnerRefs.Owner(ctx, owner)
		if err != nil || !known || uid == owner.UID {
			return harm{}, err
		}
		if c.Environment.OwnerRefs.Deleted(owner.UID) {
			return harm{}, &lackError{c.fail(errclass.Terminal, errclass.NotFound, "restore", "its owner %s %s has not been created again yet", owner.Kind, owner.Name)}
		}
		gone = append(gone, fmt.Sprintf("%s %s (uid %s)", owner.Kind, owner.Name, owner.UID))
	}
	if len(gone) == 0 {
		return harm{}, nil
	}
	return harm{
		fields: [][]string{ownersField}, reason: errclass.OwnerGone,
		what: "with the reference to its owner " + strings.Join(gone, ", ") + ", which is gone, the garbage collector would delete it",
		hint: "re-create the owner and add the reference by hand, or delete the object",
	}, nil
}
