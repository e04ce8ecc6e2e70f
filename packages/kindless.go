package packages

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/packages/installed"
)

// giveKinds finds the kinds of the objects of revisions where Crossplane does not say them: right
// after it has made the objects it notes their names alone, until it looks at the revision again.
func (p Planner) giveKinds(ctx context.Context, revisions []installed.Revision) error {
	for i := range revisions {
		r := &revisions[i]
		objects := make([]installed.Object, 0, len(r.Objects))
		for _, o := range r.Objects {
			if o.Kind != "" {
				objects = append(objects, o)
				continue
			}
			found, err := p.ownedBy(ctx, *r, o.Name)
			if err != nil {
				return err
			}
			objects = append(objects, found...)
		}
		r.Objects = objects
	}
	return nil
}

// ownedBy are the objects of a name that a revision owns.
func (p Planner) ownedBy(ctx context.Context, r installed.Revision, name string) ([]installed.Object, error) {
	var out []installed.Object
	for _, kind := range r.Kind.Payload() {
		u, err := p.Cluster.Resource(resources[kind]).Get(ctx, name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			continue
		}
		o := installed.Object{Group: kind.Group, Kind: kind.Kind, Name: name}
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", o, err)
		}
		if slices.ContainsFunc(u.GetOwnerReferences(), func(by metav1.OwnerReference) bool {
			return by.Kind == string(r.Kind)+"Revision" && by.Name == r.Name
		}) {
			out = append(out, o)
		}
	}
	return out, nil
}
