package compile

import (
	"maps"
	"slices"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
)

// Fields of a package and of a revision.
const (
	automatic, manual = "Automatic", "Manual"
	active, inactive  = "Active", "Inactive"
	policyField       = "revisionActivationPolicy"
	pausedAnnotation  = "crossplane.io/paused"
)

func spec(fields map[string]any) map[string]any { return map[string]any{"spec": fields} }

// wished is the content of a package: its image, what it is to have beside it, and other
// fields that count more.
func (b *building) wished(s change.Step, other map[string]any) map[string]any {
	fields := map[string]any{}
	maps.Copy(fields, s.Wish.Spec)
	maps.Copy(fields, other)
	fields["package"] = image.Reference{Source: s.Source, Version: s.To}.String()
	labels := map[string]any{}
	for _, more := range []map[string]string{s.Wish.Labels, b.options.Labels} {
		for name, value := range more {
			labels[name] = value
		}
	}
	out := spec(fields)
	if len(labels) > 0 {
		out["metadata"] = map[string]any{"labels": labels}
	}
	return out
}

// install has a package at a version.
func (b *building) install(s change.Step) {
	c := api.Change{Type: api.Create, Target: packageTarget(s.Kind, s.Name), Content: b.content(b.wished(s, nil))}
	if s.Existing != nil {
		c.Type, c.Rollback = api.Patch, b.restored(*s.Existing)
	}
	b.add(s.Name, b.resolved(c, s.Revision, resolved(s.Revision)))
	b.settle(s)
}

// resolved has a change of a package wait until Crossplane has resolved the tag to the image
// that was planned with. If it is another, waiting is of no use.
func (b *building) resolved(c api.Change, revision, ready string) api.Change {
	c.ReadyWhen = b.ready(ready)
	c.FailWhen = &api.FailWhen{
		Expression:        `object.status.currentIdentifier == object.spec.package && object.status.currentRevision != ` + quoted(revision),
		MessageExpression: `"image " + object.spec.package + " is not the one of the plan, the tag has moved since the plan was made: plan again"`,
	}
	return c
}

// settle waits until the revision of a package works, and the package says so.
func (b *building) settle(s change.Step) {
	b.add(s.Name+"-revision", b.awaiting(api.Change{Type: api.Await, Target: revisionTarget(s.Kind, s.Revision)}, s.Kind))
	b.add(s.Name+"-healthy", api.Change{Type: api.Await, Target: packageTarget(s.Kind, s.Name), ReadyWhen: b.ready(healthy(s.Revision))})
}

// awaiting has a change of a revision wait until that works, or cannot. What Crossplane says
// of it becomes the message.
func (b *building) awaiting(c api.Change, kind image.Kind) api.Change {
	c.ReadyWhen = b.ready(running(kind != image.Configuration))
	c.FailWhen = &api.FailWhen{
		Expression:        `object.status.conditions.exists(c, ` + failing() + `)`,
		MessageExpression: `"Crossplane: " + object.status.conditions.filter(c, c.type == "RevisionHealthy")[0].message`,
	}
	return c
}

// restored has a rollback wait until a package works again. One that did not work is not
// waited for.
func (b *building) restored(p installed.Package) *api.ChangeRollback {
	if !p.Healthy() || p.Revision == "" {
		return nil
	}
	hold := settled
	when := *b.ready(healthy(p.Revision))
	when.HoldFor = &hold
	return &api.ChangeRollback{ReadyWhen: when}
}

// remove deletes packages: all of them, and then what they have left.
func (b *building) remove() {
	for _, s := range b.change.Steps {
		target := packageTarget(s.Kind, s.Name)
		b.add("pause-"+s.Name, api.Change{
			Type: api.Patch, Target: target,
			Content:   b.content(map[string]any{"metadata": map[string]any{"annotations": map[string]any{pausedAnnotation: "true"}}}),
			ReadyWhen: b.ready(paused),
		})
		for _, r := range b.change.State.Of(*s.Existing) {
			if r.Active {
				b.release("release-"+s.Name, r)
			}
		}
		b.add("delete-"+s.Name, api.Change{Type: api.Delete, Target: target, PropagationPolicy: api.PropagateOrphan})
	}
	// The last that can be rolled back.
	b.noted()
	for _, s := range b.change.Steps {
		revisions := b.change.State.Of(*s.Existing)
		// The newest last: it has what is in use.
		slices.Reverse(revisions)
		for _, r := range revisions {
			b.add("remove-"+s.Name, api.Change{Type: api.Delete, Target: revisionTarget(r.Kind, r.Name), When: "object != null", AcceptLoss: true})
		}
	}
}

// release has a revision let go of its objects. Crossplane has changed it by then: so its
// before-image is taken when it is reached.
func (b *building) release(name string, r installed.Revision) {
	b.add(name, api.Change{
		Type: api.Patch, Target: revisionTarget(r.Kind, r.Name), When: "true",
		Content: b.content(spec(map[string]any{"desiredState": inactive})), ReadyWhen: b.ready(released()),
	})
}

// replace has a new package take over the objects of an old one.
func (b *building) replace() {
	old := *b.change.Replaced
	for _, s := range b.change.Steps {
		if s.Source != b.change.Root {
			b.install(s)
		}
	}
	i := slices.IndexFunc(b.change.Steps, func(s change.Step) bool { return s.Source == b.change.Root })
	s := b.change.Steps[i]
	b.add("keep-"+old.Name, api.Change{
		Type: api.Patch, Target: packageTarget(old.Kind, old.Name),
		Content: b.content(spec(map[string]any{policyField: manual})), Rollback: b.restored(old),
	})
	b.add(s.Name, b.resolved(api.Change{
		Type: api.Create, Target: packageTarget(s.Kind, s.Name),
		Content: b.content(b.wished(s, map[string]any{policyField: manual})),
	}, s.Revision, staged(s.Revision)))
	for _, r := range b.change.State.Of(old) {
		if r.Active {
			b.release("release-"+old.Name, r)
		}
	}
	b.add("activate-"+s.Name, b.awaiting(api.Change{
		Type: api.Patch, Target: revisionTarget(s.Kind, s.Revision), When: "true",
		Content: b.content(spec(map[string]any{"desiredState": active})),
	}, s.Kind))
	b.add("run-"+s.Name, api.Change{
		Type: api.Patch, Target: packageTarget(s.Kind, s.Name),
		Content: b.content(spec(map[string]any{policyField: automatic})), ReadyWhen: b.ready(healthy(s.Revision)),
	})
}
