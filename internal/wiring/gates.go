package wiring

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/expression"
	"janus.io/janus/internal/readiness"
	"janus.io/janus/mutate"
)

// Gates evaluates the conditions of changes over targets of the Transaction, which it
// reads as the Transaction's ServiceAccount.
type Gates struct {
	*shared
}

// sight is what an expression, or a status, was evaluated on.
type sight struct {
	session
	own       *unstructured.Unstructured
	named     map[string]map[string]any
	sensitive bool
}

// Admits evaluates the when of a change.
func (g *Gates) Admits(ctx context.Context, t *api.Transaction, i int) (bool, error) {
	text := t.Spec.Changes[i].When
	wanted, seen, err := g.evaluate(ctx, t, i, text)
	if err == nil || seen == nil {
		return wanted, err
	}
	return false, errclass.New(errclass.Terminal, errclass.Invalid, "evaluate when of", t.Status.Items[i].Target.String(),
		"%s: %w", text, seen.without(err)).WithHint("test with has() what may not be there, and with == null who may not")
}

// Ready evaluates the readyWhen or goneWhen of a change.
func (g *Gates) Ready(ctx context.Context, t *api.Transaction, i int) (engine.Readiness, error) {
	change := t.Spec.Changes[i]
	switch {
	case change.GoneWhen != nil:
		return g.holds(ctx, t, i, change.GoneWhen.Expression)
	case change.ReadyWhen == nil:
		return engine.Readiness{Ready: true}, nil
	case change.ReadyWhen.Expression != "":
		return g.holds(ctx, t, i, change.ReadyWhen.Expression)
	default:
		return g.byStatus(ctx, t, i)
	}
}

// holds evaluates an expression that may ask for what is not there yet.
func (g *Gates) holds(ctx context.Context, t *api.Transaction, i int, text string) (engine.Readiness, error) {
	name := t.Status.Items[i].Target.String()
	ready, seen, err := g.evaluate(ctx, t, i, text)
	switch {
	case err != nil && seen == nil:
		return engine.Readiness{}, err
	case err != nil:
		return engine.Readiness{Message: fmt.Sprintf("%s: %s: %s", name, text, seen.without(err))}, nil
	default:
		return engine.Readiness{Ready: ready, Message: fmt.Sprintf("%s: %s is false", name, text)}, nil
	}
}

// evaluate reads what an expression asks for and evaluates it. What it was evaluated on
// is nil if it was not.
func (g *Gates) evaluate(ctx context.Context, t *api.Transaction, i int, text string) (bool, *sight, error) {
	e, err := compiled(t, text)
	if err != nil {
		return false, nil, errclass.New(errclass.Terminal, errclass.Invalid, "compile", t.Status.Items[i].Target.String(), "%w", err)
	}
	s, err := g.session(ctx, t)
	if err != nil {
		return false, nil, err
	}
	seen := &sight{session: s, named: map[string]map[string]any{}}
	if e.AsksForObject() {
		if seen.own, err = seen.read(ctx, i); err != nil {
			return false, nil, err
		}
	}
	for j := range t.Spec.Changes {
		name := plan.ChangeName(j, t.Spec.Changes[j])
		if !slices.Contains(e.Names(), name) {
			continue
		}
		other, err := seen.read(ctx, j)
		if err != nil {
			return false, nil, err
		}
		seen.named[name] = contentOrNil(other)
	}
	truth, err := e.Evaluate(ctx, contentOrNil(seen.own), seen.named)
	return truth, seen, err
}

// read gets the target of an item; nil if there is none.
func (s *sight) read(ctx context.Context, i int) (*unstructured.Unstructured, error) {
	if s.txn.Status.Items[i].Resource == "" {
		return nil, nil
	}
	change, err := s.changeOf(i, nil)
	if err != nil {
		return nil, err
	}
	s.sensitive = s.sensitive || change.Sensitive
	live, err := mutate.Read(ctx, change)
	return live, s.explainDenied(ctx, change, []string{"get"}, err)
}

// byStatus asks the target's own status.
func (g *Gates) byStatus(ctx context.Context, t *api.Transaction, i int) (engine.Readiness, error) {
	s, err := g.session(ctx, t)
	if err != nil {
		return engine.Readiness{}, err
	}
	name := t.Status.Items[i].Target.String()
	seen := &sight{session: s}
	live, err := seen.read(ctx, i)
	if err != nil {
		return engine.Readiness{}, err
	}
	if live == nil {
		return engine.Readiness{Failed: true, Message: name + ": " + gone(t.Spec.Changes[i])}, nil
	}
	hasStatus := false
	if readiness.Unseen(live) {
		if hasStatus, err = g.resolver.HasStatus(live.GroupVersionKind().GroupVersion(), t.Status.Items[i].Resource); err != nil {
			return engine.Readiness{}, err
		}
	}
	state, err := readiness.Of(live, hasStatus)
	if err != nil {
		return engine.Readiness{Failed: true, Message: fmt.Sprintf("%s: its status cannot be read: %s", name, seen.without(err))}, nil
	}
	if seen.sensitive {
		state.Message = "it is not ready"
	}
	return engine.Readiness{Ready: state.Ready, Failed: state.Failed, Message: name + ": " + state.Message}, nil
}

// gone says who may have deleted what is waited for.
func gone(change api.Change) string {
	content, _ := contentOf(change) // What is elsewhere is not looked up for the sake of a message.
	ttl, has, _ := unstructured.NestedFieldNoCopy(content, "spec", "ttlSecondsAfterFinished")
	if change.Target.Kind != "Job" || !has {
		return "it was deleted by another client"
	}
	return fmt.Sprintf("it is gone, as after its ttlSecondsAfterFinished (%v), and whether it had completed is not known; raise that to a minute or more", ttl)
}

// without returns an error without content of confidential objects.
func (s *sight) without(err error) error {
	if s.sensitive {
		return errCannotTell
	}
	return err
}

var errCannotTell = errors.New("it cannot be evaluated on the objects as they are")

func contentOrNil(u *unstructured.Unstructured) map[string]any {
	if u == nil {
		return nil
	}
	return u.Object
}

// compiled compiles an expression of a Transaction. It may ask for targets of the
// Transaction and for nothing else.
func compiled(t *api.Transaction, text string) (*expression.Expression, error) {
	e, err := expression.Compile(text)
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for i := range t.Spec.Changes {
		names[plan.ChangeName(i, t.Spec.Changes[i])] = true
	}
	for _, name := range e.Names() {
		if !names[name] {
			return nil, fmt.Errorf("it asks for objects.%s, and no change has that name", name)
		}
	}
	return e, nil
}

// checkGates refuses expressions that cannot be evaluated, whatever the objects are.
func checkGates(t *api.Transaction, change api.Change) error {
	gates := map[string]string{"when": change.When}
	if change.ReadyWhen != nil {
		gates["readyWhen"] = change.ReadyWhen.Expression
	}
	if change.GoneWhen != nil {
		gates["goneWhen"] = change.GoneWhen.Expression
	}
	for _, field := range []string{"when", "readyWhen", "goneWhen"} {
		if gates[field] == "" {
			continue
		}
		if _, err := compiled(t, gates[field]); err != nil {
			return errclass.New(errclass.Terminal, errclass.Invalid, "compile "+field+" of", change.Target.String(), "%w", err).
				WithHint("see the Common Expression Language in the documentation of Kubernetes; object is the target, objects.NAME that of another change")
		}
	}
	return nil
}
