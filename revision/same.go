package revision

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"

	"janus.io/janus/api/v1alpha1"
)

// absent is what a target is after it was deleted.
const absent = "absent"

// After is what a Transaction has left of each of its targets, as digests of content: the same for
// content that means the same. One that is not known is empty.
type After map[v1alpha1.Target]string

// Enter enters a change, after those before it.
func (a After) Enter(t v1alpha1.Target, kind v1alpha1.ChangeType, before *v1alpha1.BeforeImage) {
	switch {
	case kind == v1alpha1.Delete:
		a[t.Identity()] = absent
	case before == nil:
		a[t.Identity()] = ""
	default:
		a[t.Identity()] = before.After
	}
}

// State is a short name of what a revision has left of its targets: the same for two that have left
// the same objects with content that means the same, whatever they changed. It is empty if not all
// of that is known.
func State(r Revision) string {
	after := After{}
	for _, item := range r.Items {
		after.Enter(item.Target, item.Type, item.Before)
	}
	type object struct {
		Target v1alpha1.Target
		After  string
	}
	var all []object
	for target, digest := range after {
		if digest == "" {
			return ""
		}
		all = append(all, object{target, digest})
	}
	slices.SortFunc(all, func(a, b object) int {
		return cmp.Or(
			cmp.Compare(a.Target.APIVersion, b.Target.APIVersion), cmp.Compare(a.Target.Kind, b.Target.Kind),
			cmp.Compare(a.Target.Namespace, b.Target.Namespace), cmp.Compare(a.Target.Name, b.Target.Name),
		)
	})
	data, err := json.Marshal(all)
	if err != nil || len(all) == 0 {
		return ""
	}
	digest := sha256.Sum256(data)
	return hex.EncodeToString(digest[:8])
}

// SameAs tells of each revision, given what they have left by rising number, which is the newest
// one before it after which the objects of this one were the same as they are after it: by its
// position, or -1 for none. What no earlier revision has left is not known.
func SameAs(all []After) []int {
	out := make([]int, len(all))
	for i, this := range all {
		out[i] = -1
		for n := i - 1; n >= 0 && out[i] < 0; n-- {
			if touches(all[n], this) && leftBy(all[:n+1], this) {
				out[i] = n
			}
		}
	}
	return out
}

func touches(earlier, this After) bool {
	for target := range this {
		if _, there := earlier[target]; there {
			return true
		}
	}
	return false
}

// leftBy reports whether all that a revision has left was so after the last of the earlier ones.
func leftBy(earlier []After, this After) bool {
	for target, digest := range this {
		was := ""
		for n := len(earlier) - 1; n >= 0; n-- {
			if left, there := earlier[n][target]; there {
				was = left
				break
			}
		}
		if digest == "" || digest != was {
			return false
		}
	}
	return true
}

// Outdated returns those revisions, given by rising number, that are to be forgotten so that limit
// are left. One that has written nothing doesn't count, and neither does one after which its objects
// were as after the one before it that has written something: to run the same manifests again does
// not push out older ones. Of those that don't count, the newest are left, limit of them as well.
func Outdated(all []Entry, limit int) []Entry {
	counts := make([]bool, len(all))
	state := ""
	for i, e := range all {
		if e.Unchanged {
			continue
		}
		counts[i] = e.State == "" || e.State != state
		state = e.State
	}
	var out []Entry
	counted, others := 0, 0
	for i := len(all) - 1; i >= 0; i-- {
		if counts[i] {
			counted++
		} else {
			others++
		}
		if counted > limit || !counts[i] && (counted == limit || others > limit) {
			out = append(out, all[i])
		}
	}
	slices.Reverse(out)
	return out
}
