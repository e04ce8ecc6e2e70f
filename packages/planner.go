package packages

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/client-go/dynamic"

	"janus.io/janus/packages/change"
	"janus.io/janus/packages/check"
	"janus.io/janus/packages/image"
	"janus.io/janus/packages/installed"
	"janus.io/janus/packages/resolve"
)

// Registry is what images are read from.
type Registry interface {
	// Tags, Digest and Fetch are those of image.Client.
	Tags(ctx context.Context, location string) ([]string, error)
	Digest(ctx context.Context, location, tag string) (string, error)
	Fetch(ctx context.Context, location, digest string) (*image.Package, error)
}

// Registries gives what images are read from with the Secrets of a package, by their names in
// Crossplane's namespace.
type Registries func(ctx context.Context, pullSecrets []string) (Registry, error)

// Planner plans changes.
type Planner struct {
	Cluster    dynamic.Interface
	Registries Registries
	// Crossplane is what is known of it beside what the cluster says.
	Crossplane installed.Crossplane
	// MaxBytes is how much is read of images for one plan, unpacked; 0 for no limit but that of
	// each image.
	MaxBytes int64
}

// Request is a change that is asked for.
type Request struct {
	Type change.Type
	// Image is what is installed.
	Image image.Reference
	// Name is that of the package; empty for the one that Crossplane would give it.
	Name string
	// Wish is what the package of Image is to have beside it.
	Wish change.Wish
	// PullSecrets are further Secrets with which Image is read.
	PullSecrets []string
	// Targets are the packages that are deleted, by source or name; for Replace the one in
	// whose place another comes.
	Targets []string
}

// Plan is a planned change, with all that was found about it. If there are errors among the
// findings, the change may be incomplete.
type Plan struct {
	Change   change.Change
	Findings check.Findings
}

// Plan plans a change. Its error is one of the cluster; what is wrong with the change, or
// with an image, is a finding.
func (p Planner) Plan(ctx context.Context, r Request) (Plan, error) {
	state, err := p.State(ctx)
	if errors.Is(err, ErrMissing) {
		return Plan{Findings: check.Findings{{Reason: check.PackageManagerMissing, Message: "Crossplane is not installed: the cluster has no " + lockResource.GroupResource().String()}}}, nil
	}
	if err == nil {
		err = p.giveKinds(ctx, state.Revisions)
	}
	if err != nil {
		return Plan{}, err
	}
	q := &planning{Planner: p, request: r, catalog: &catalog{planner: p, request: r, state: state, read: map[string]*fetched{}}}
	q.plan.Change = change.Change{Type: r.Type, Root: r.Image.Source, State: state}
	q.plan.Findings = check.State(state)
	if err := q.run(ctx); err != nil {
		found, ok := finding(err)
		if !ok {
			return Plan{}, err
		}
		q.plan.Findings = append(q.plan.Findings, found)
		q.plan.Findings = q.plan.Findings.Sorted()
		return q.plan, nil
	}
	if q.plan.Change.Found, err = p.look(ctx, q.plan.Change); err != nil {
		return Plan{}, err
	}
	q.plan.Findings = append(q.plan.Findings, check.Change(q.plan.Change)...).Sorted()
	return q.plan, nil
}

// finding is an error that is wrong with the change.
func finding(err error) (check.Finding, bool) {
	var conflict *resolve.Conflict
	var givenUp *resolve.GivenUpError
	var found *findingError
	switch {
	case errors.As(err, &found):
		return found.Finding, true
	case errors.As(err, &conflict):
		return check.Conflict(conflict), true
	case errors.As(err, &givenUp):
		return check.Finding{Reason: check.VersionConflict, Message: givenUp.Error()}, true
	default:
		return check.Unreadable(err)
	}
}

// findingError is a finding that leaves nothing to plan.
type findingError struct{ check.Finding }

func (e *findingError) Error() string { return e.Message }

// planning is one run.
type planning struct {
	Planner
	request Request
	catalog *catalog
	plan    Plan
	// replaced are the packages in whose place others come.
	replaced []*installed.Package
}

func (q *planning) run(ctx context.Context) error {
	problem := resolve.Problem{Installed: q.plan.Change.State.Solvable()}
	if q.request.Type != change.Install {
		if err := q.targets(&problem); err != nil {
			return err
		}
	}
	if q.request.Type != change.Delete {
		v := q.request.Image
		// A package that is asked for by name alone is there to be changed.
		content, err := q.catalog.content(ctx, v.Source, v.Version)
		if err != nil {
			return err
		}
		problem.Wanted = []resolve.Package{{Source: v.Source, Version: v.Version, Dependencies: solvable(content.Dependencies)}}
	}
	for {
		solution, err := resolve.Solve(ctx, problem, q.catalog)
		if err != nil {
			return fmt.Errorf("find versions: %w", err)
		}
		if err := q.steps(ctx, solution); err != nil {
			return err
		}
		also := q.alsoReplaced()
		if also == "" {
			return nil
		}
		problem.Removed = append(problem.Removed, also)
	}
}

// steps puts together what happens to packages.
func (q *planning) steps(ctx context.Context, solution resolve.Solution) error {
	c := &q.plan.Change
	c.Steps = nil
	if moved := func(m resolve.Move) bool { return m.Source == q.request.Image.Source }; q.request.Type == change.Install && !slices.ContainsFunc(solution.Moves, moved) {
		v := q.request.Image
		for _, p := range c.State.Sourced(v.Source) {
			if !q.request.Wish.Met(p) {
				solution.Moves = append(solution.Moves, resolve.Move{Source: v.Source, From: v.Version, To: v.Version})
			}
		}
	}
	for _, m := range solution.Moves {
		if slices.ContainsFunc(q.replaced, func(p *installed.Package) bool { return p.Image.Source == m.Source }) {
			continue
		}
		s, err := q.step(ctx, m)
		if err != nil {
			return err
		}
		c.Steps = append(c.Steps, s)
	}
	for i := range c.Steps {
		if s := &c.Steps[i]; c.Replaced != nil {
			s.Replaces = q.replacedBy(*s)
		}
	}
	return nil
}

// targets finds the packages that go.
func (q *planning) targets(problem *resolve.Problem) error {
	c := &q.plan.Change
	for _, name := range q.request.Targets {
		found := slices.DeleteFunc(slices.Clone(c.State.Packages), func(p installed.Package) bool { return p.Name != name && p.Image.Source != name })
		switch {
		case len(found) == 0:
			return &findingError{check.Finding{Reason: check.NotFound, Message: fmt.Sprintf("%s is not installed: no package has this name or this source", name)}}
		case len(found) > 1:
			return &findingError{check.Finding{Reason: check.NotFound, Message: fmt.Sprintf("%s is the name of %d packages: name one by its source", name, len(found))}}
		}
		p := found[0]
		if !slices.ContainsFunc(problem.Installed, func(i resolve.Package) bool { return i.Source == p.Image.Source }) {
			return &findingError{check.Finding{Reason: check.Unsupported, Message: fmt.Sprintf("%s %s has no entry in Crossplane's Lock: it is inactive, or was never installed; delete it with kubectl", p.Kind, p.Name)}}
		}
		if !slices.Contains(problem.Removed, p.Image.Source) {
			problem.Removed = append(problem.Removed, p.Image.Source)
		}
		if q.request.Type == change.Replace {
			c.Replaced, q.replaced = &p, []*installed.Package{&p}
		} else if c.Root == "" {
			c.Root = p.Image.Source
		}
	}
	return nil
}

// step puts together what happens to one package.
func (q *planning) step(ctx context.Context, m resolve.Move) (change.Step, error) {
	s := change.Step{Source: m.Source, From: m.From, To: m.To, Name: image.Name(m.Source)}
	if s.Source == q.request.Image.Source && q.request.Name != "" {
		s.Name = q.request.Name
	}
	if there := q.plan.Change.State.Sourced(m.Source); len(there) > 0 {
		s.Existing, s.Kind, s.Name = &there[0], there[0].Kind, there[0].Name
	}
	if s.Goes() {
		return s, nil
	}
	f, err := q.catalog.fetch(ctx, m.Source, m.To)
	if err != nil {
		return s, err
	}
	s.Content, s.Digest = f.content, f.digest
	if s.Source == q.request.Image.Source {
		s.Wish = q.request.Wish
	}
	if s.Existing == nil {
		s.Kind = f.content.Kind
		if kind, ok := q.kindAsked(m.Source); ok {
			s.Kind = kind
		}
	}
	s.Revision = image.RevisionName(s.Name, s.Digest)
	return s, nil
}

// kindAsked is the kind as which others need a package.
func (q *planning) kindAsked(source string) (image.Kind, bool) {
	for _, f := range q.catalog.read {
		for _, d := range f.content.Dependencies {
			if d.Source == source {
				return d.Kind, true
			}
		}
	}
	return "", false
}
