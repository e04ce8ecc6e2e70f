package inverse

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/api/v1alpha1"
)

// written reads steps such as "Create a", in the order in which they were made. Whether a target
// existed before follows from its steps: "Delete! a" finds nothing, "Patch= a" writes nothing.
func written(t *testing.T, text string) []Step {
	t.Helper()
	var out []Step
	for _, part := range strings.Split(text, ",") {
		kind, name, found := strings.Cut(strings.TrimSpace(part), " ")
		require.True(t, found, part)
		step := Step{Target: v1alpha1.Target{APIVersion: "v1", Kind: "ConfigMap", Name: name}}
		kind, step.Idle = strings.TrimSuffix(kind, "="), strings.HasSuffix(kind, "=")
		absent := strings.HasSuffix(kind, "!")
		step.Type = v1alpha1.ChangeType(strings.TrimSuffix(kind, "!"))
		step.Existed = step.Type != v1alpha1.Create && !absent
		out = append(out, step)
	}
	return out
}

func read(steps []Step, changes []Change) string {
	var out []string
	for _, c := range changes {
		out = append(out, fmt.Sprintf("%s %s %v", c.Type, steps[c.newest()].Target.Name, c.Steps))
	}
	return strings.Join(out, ", ")
}

// The table of the composition: what undoes the changes that were made of one object.
func TestChangesOfOneObjectAreUndoneByOne(t *testing.T) {
	for _, c := range []struct{ made, undone string }{
		{"Create a", "Delete a [0]"},
		{"Update a", "Update a [0]"},
		{"Patch a", "Update a [0]"},
		{"Delete a", "Create a [0]"},
		{"Create a, Patch a", "Delete a [1 0]"},
		{"Create a, Update a, Patch a", "Delete a [2 1 0]"},
		{"Create a, Delete a", ""},
		{"Create a, Patch a, Delete a", ""},
		{"Create a, Delete a, Create a", "Delete a [2 1 0]"},
		{"Create a, Delete a, Create a, Delete a", ""},
		{"Patch a, Update a", "Update a [1 0]"},
		{"Patch a, Delete a", "Create a [1 0]"},
		{"Delete a, Create a", "Update a [1 0]"},
		{"Delete a, Create a, Patch a", "Update a [2 1 0]"},
		{"Delete a, Create a, Delete a", "Create a [2 1 0]"},
		{"Patch a, Delete a, Create a", "Update a [2 1 0]"},
		// What wrote nothing, and the Delete of what was not there, have nothing to be undone.
		{"Patch= a", ""},
		{"Delete! a", ""},
		{"Patch= a, Patch a", "Update a [1]"},
		{"Create a, Patch= a, Patch a", "Delete a [2 0]"},
		{"Create a, Delete a, Delete! a", ""},
		// Another client came in between, which is found when the target is read.
		{"Create a, Create a", "Delete a [1 0]"},
		{"Delete a, Patch a", "Update a [1 0]"},
		{"Delete a, Delete a", "Create a [1 0]"},
	} {
		steps := written(t, c.made)
		assert.Equal(t, c.undone, read(steps, Compose(steps)), c.made)
	}
}

// The order is the reverse one, as far as one change for each object can be.
func TestTheOrderIsThatInWhichThingsAreNeeded(t *testing.T) {
	for name, c := range map[string]struct{ made, undone string }{
		"several objects, each changed once": {
			"Create a, Patch b, Delete c", "Create c [2], Update b [1], Delete a [0]",
		},
		"what is in a Namespace that was created, and changed since": {
			"Create ns, Create a, Patch ns", "Delete a [1], Delete ns [2 0]",
		},
		"what was in a Namespace that was changed, and deleted since": {
			"Patch ns, Delete a, Delete ns", "Create ns [2 0], Create a [1]",
		},
		"a Deployment that was pointed to another ConfigMap, and to a third one": {
			"Create new, Patch app, Delete old, Patch app", "Create old [2], Update app [3 1], Delete new [0]",
		},
		"a Deployment that was changed before it was pointed to a ConfigMap which was created": {
			"Patch app, Create new, Patch app", "Update app [2 0], Delete new [1]",
		},
		"a Deployment that used a ConfigMap no more, which was deleted, and then uses one that was created": {
			"Patch app, Delete old, Create new, Patch app", "Create old [1], Update app [3 0], Delete new [2]",
		},
		"several that wait for one update": {
			"Patch app, Create ns, Create new, Patch app", "Update app [3 0], Delete new [2], Delete ns [1]",
		},
		"a name that one has given up and another has taken": {
			"Delete a, Create b", "Delete b [1], Create a [0]",
		},
	} {
		steps := written(t, c.made)
		assert.Equal(t, c.undone, read(steps, Compose(steps)), name)
	}
}

// Versions of one kind are one object; namespaces and groups are not.
func TestObjectsAreToldApart(t *testing.T) {
	steps := written(t, "Patch a, Patch a, Patch a, Patch a")
	steps[1].Target.Namespace = "other"
	steps[2].Target.APIVersion = "example.com/v1"
	steps[3].Target.APIVersion = "example.com/v2"
	assert.Equal(t, "Update a [3 2], Update a [1], Update a [0]", read(steps, Compose(steps)))
}

// world is what is there: how often each object was made or changed.
type world map[v1alpha1.Target]string

func (w world) equal(other world) bool {
	for target, state := range w {
		if other[target] != state {
			return false
		}
	}
	return len(w) == len(other)
}

// Whatever was made, the composed changes lead back to what was there before, and an undo of the
// undo to what was there then; nothing is created that is there, nor changed that is not.
func TestComposedChangesLeadBack(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // the same choices for the same seed are the point
		before := world{}
		for _, name := range []string{"a", "b", "c"} {
			if random.IntN(2) == 0 {
				before[v1alpha1.Target{Name: name}.Identity()] = "first"
			}
		}
		now, images := clone(before), []string{}
		var steps []Step
		for n := range 1 + random.IntN(7) {
			target := v1alpha1.Target{Name: []string{"a", "b", "c"}[random.IntN(3)]}
			state, there := now[target.Identity()]
			step := Step{Target: target, Type: v1alpha1.Create, Existed: there}
			switch {
			case there && random.IntN(3) == 0, !there && random.IntN(4) == 0:
				step.Type = v1alpha1.Delete
			case there:
				step.Type, step.Idle = v1alpha1.Patch, random.IntN(4) == 0
			}
			steps, images = append(steps, step), append(images, state)
			switch {
			case step.Type == v1alpha1.Delete:
				delete(now, target.Identity())
			case !step.Idle:
				now[target.Identity()] = fmt.Sprint("state ", n)
			}
		}
		seen := map[v1alpha1.Target]bool{}
		for _, c := range Compose(steps) {
			target := steps[c.newest()].Target.Identity()
			_, there := now[target]
			require.False(t, seen[target], "seed %d: one change for each object", seed)
			require.Equal(t, c.Type != v1alpha1.Create, there, "seed %d: %s", seed, c.Type)
			require.True(t, slices.IsSortedFunc(c.Steps, func(a, b int) int { return b - a }))
			if seen[target] = true; c.Type == v1alpha1.Delete {
				delete(now, target)
			} else {
				now[target] = images[c.oldest()]
			}
		}
		require.True(t, now.equal(before), "seed %d: %v", seed, steps)
	}
}

func clone(w world) world {
	out := world{}
	for target, state := range w {
		out[target] = state
	}
	return out
}
