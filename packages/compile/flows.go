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
	fields["package"] = reference(s)
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
	b.add(s.Name, b.resolved(c, s, resolved(s.Revision)))
	b.settle(s)
}

// resolved has a change of a package wait until Crossplane has resolved the tag to the image
// that was planned with. If it is another, or someone has named another since, waiting is of no use.
func (b *building) resolved(c api.Change, s change.Step, ready string) api.Change {
	c.ReadyWhen = b.ready(ready)
	c.FailWhen = &api.FailWhen{
		Expression: `object.spec.package != ` + quoted(reference(s)) +
			` || object.status.currentIdentifier == object.spec.package && object.status.currentRevision != ` + quoted(s.Revision),
		MessageExpression: `object.spec.package != ` + quoted(reference(s)) + ` ? "another client has changed spec.package to " + object.spec.package` +
			` : "image " + object.spec.package + " is not the one of the plan, the tag has moved since the plan was made: plan again"`,
	}
	return c
}

// reference is the image of a step.
func reference(s change.Step) string {
	return image.Reference{Source: s.Source, Version: s.To}.String()
}

// settle waits until the revision of a package works, and the package says so.
func (b *building) settle(s change.Step) {
	b.add(s.Name+"-revision", b.awaiting(api.Change{Type: api.Await, Target: revisionTarget(s.Kind, s.Revision)}, s))
	b.add(s.Name+"-healthy", api.Change{Type: api.Await, Target: packageTarget(s.Kind, s.Name), ReadyWhen: b.ready(healthy(s.Revision))})
}

// awaiting has a change of a revision wait until that works, or cannot. What Crossplane says
// of it becomes the message.
func (b *building) awaiting(c api.Change, s change.Step) api.Change {
	c.ReadyWhen = b.ready(running(s.Kind != image.Configuration))
	// Crossplane starts a revision before it has stopped the one before, which has the objects until then.
	var before []string
	for _, p := range []*installed.Package{s.Existing, s.Replaces} {
		if p != nil && p.Revision != "" {
			before = append(before, p.Revision)
		}
	}
	c.FailWhen = &api.FailWhen{
		Expression:        `object.status.conditions.exists(c, ` + failing(before) + `)`,
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
	// The last that is rolled back with nothing lost. After it, a custom resource that has come since the
	// plan was made still stops the deletion, because its definition would go with the revision.
	b.noted()
	for _, s := range b.change.Steps {
		revisions := b.change.State.Of(*s.Existing)
		// The newest last: it has what is in use.
		slices.Reverse(revisions)
		for _, r := range revisions {
			b.add("remove-"+s.Name, api.Change{Type: api.Delete, Target: revisionTarget(r.Kind, r.Name), When: "object != null", AcceptLoss: b.options.AcceptLoss})
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

// replace has new packages take over the objects of old ones. All new ones are there before the
// first old one lets go, and an old one lets go before what it needs does: Crossplane would bring
// back what an active revision lacks.
func (b *building) replace() {
	var comes []change.Step
	for _, s := range b.change.Steps {
		if s.Replaces != nil {
			comes = append(comes, s)
			b.add("keep-"+s.Replaces.Name, api.Change{
				Type: api.Patch, Target: packageTarget(s.Replaces.Kind, s.Replaces.Name),
				Content: b.content(spec(map[string]any{policyField: manual})), Rollback: b.restored(*s.Replaces),
			})
		}
	}
	for _, s := range b.change.Steps {
		if s.Replaces != nil {
			b.stage(s)
		} else {
			b.install(s)
		}
	}
	for _, s := range slices.Backward(comes) {
		for _, r := range b.change.State.Of(*s.Replaces) {
			if r.Active {
				b.release("release-"+s.Replaces.Name, r)
			}
		}
	}
	for _, s := range comes {
		b.add("activate-"+s.Name, b.awaiting(api.Change{
			Type: api.Patch, Target: revisionTarget(s.Kind, s.Revision), When: "true",
			Content: b.content(spec(map[string]any{"desiredState": active})),
		}, s))
	}
	for _, s := range comes {
		b.add("run-"+s.Name, api.Change{
			Type: api.Patch, Target: packageTarget(s.Kind, s.Name),
			Content: b.content(spec(map[string]any{policyField: automatic})), ReadyWhen: b.ready(healthy(s.Revision)),
		})
	}
}

// stage has a package with an inactive revision.
func (b *building) stage(s change.Step) {
	b.add(s.Name, b.resolved(api.Change{
		Type: api.Create, Target: packageTarget(s.Kind, s.Name),
		Content: b.content(b.wished(s, map[string]any{policyField: manual})),
	}, s, staged(s.Revision)))
}
