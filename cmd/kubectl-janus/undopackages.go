package main

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
	"janus.io/janus/revision"
)

// goingBack are the packages of Crossplane that an undo gives the version of before. One that it
// deletes is not among them: janusd looks at its custom resources first.
type goingBack []string

func (g *goingBack) add(kind api.ChangeType, target api.Target) {
	of := schema.FromAPIVersionAndKind(target.APIVersion, target.Kind)
	changed := kind == api.Patch || kind == api.Update
	defines := of.Kind == string(image.Provider) || of.Kind == string(image.Configuration)
	if name := target.String(); changed && defines && of.Group == installed.Group && !slices.Contains(*g, name) {
		*g = append(*g, name)
	}
}

func (g *goingBack) addRevision(r revision.Revision) {
	for _, item := range r.Items {
		g.add(item.Type, item.Target)
	}
}

// addSince adds those of all revisions after one. What cannot be read is for janusd to judge.
func (g *goingBack) addSince(ctx context.Context, s *session, namespace string, number int64) {
	client, err := s.kube()
	if err != nil {
		return
	}
	store := revision.NewStore(client)
	entries, _ := store.List(ctx, namespace)
	for _, e := range entries {
		if e.Number <= number {
			continue
		}
		if r, err := store.Get(ctx, namespace, e.Number); err == nil {
			g.addRevision(r)
		}
	}
}

// warnings say what an undo does to custom resources, and what to do instead.
func (g *goingBack) warnings() []string {
	if len(*g) == 0 {
		return nil
	}
	return []string{"an undo doesn't look at the custom resources of " + few(*g) + ": fields that the version of before doesn't have are lost. " +
		"kubectl janus package plan install with that version, and --allow-downgrade, looks at them first"}
}
