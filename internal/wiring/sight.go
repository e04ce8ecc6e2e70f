package wiring

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/expression"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// sight is what the expressions of an item, or its status, are evaluated on. Each object is
// read once.
type sight struct {
	session
	item  int
	known map[int]*unstructured.Unstructured
	// sensitive is set once a confidential object was read.
	sensitive bool
}

// see begins to look at an item.
func (s *shared) see(ctx context.Context, t *api.Transaction, i int) (*sight, error) {
	id, err := s.session(ctx, t)
	return &sight{session: id, item: i, known: map[int]*unstructured.Unstructured{}}, err
}

func (s *sight) name() string { return s.txn.Status.Items[s.item].Target.String() }

// truth reads what an expression asks for and evaluates it. That it cannot be evaluated on
// the objects as they are is untold, which has no content of confidential objects.
func (s *sight) truth(ctx context.Context, text string) (holds bool, untold, err error) {
	e, err := compiled(s.txn, text, expression.Compile)
	if err != nil {
		return false, nil, s.malformed(err)
	}
	own, named, err := s.objects(ctx, e)
	if err != nil {
		return false, nil, err
	}
	if holds, err = e.Evaluate(ctx, own, named); err != nil {
		return false, s.without(err), nil
	}
	return holds, nil, nil
}

// text evaluates an expression that says something; empty if it cannot be evaluated, or has
// seen a confidential object.
func (s *sight) text(ctx context.Context, text string) (string, error) {
	e, err := compiled(s.txn, text, expression.CompileText)
	if err != nil {
		return "", s.malformed(err)
	}
	own, named, err := s.objects(ctx, e)
	if err != nil || s.sensitive {
		return "", err
	}
	said, err := e.Text(ctx, own, named)
	if err != nil {
		return "", nil // What the expression of the failure says is told in its place.
	}
	return errclass.Cut(errclass.OneLine(said), 512), nil
}

func (s *sight) malformed(err error) error {
	return errclass.New(errclass.Terminal, errclass.Invalid, "compile", s.name(), "%w", err)
}

// objects reads what an expression asks for.
func (s *sight) objects(ctx context.Context, e *expression.Expression) (own map[string]any, named map[string]map[string]any, err error) {
	if e.AsksForObject() {
		live, err := s.read(ctx, s.item)
		if err != nil {
			return nil, nil, err
		}
		own = contentOrNil(live)
	}
	byName := map[string]int{}
	for j := range s.txn.Spec.Changes {
		byName[plan.ChangeName(j, s.txn.Spec.Changes[j])] = j
	}
	named = map[string]map[string]any{}
	for _, name := range e.Names() {
		other, err := s.read(ctx, byName[name])
		if err != nil {
			return nil, nil, err
		}
		named[name] = contentOrNil(other)
	}
	return own, named, nil
}

// read gets the target of an item; nil if there is none.
func (s *sight) read(ctx context.Context, i int) (*unstructured.Unstructured, error) {
	if live, ok := s.known[i]; ok {
		return live, nil
	}
	ref, err := s.refOf(i)
	if errclass.Is(err, errclass.KindNotFound) {
		s.known[i] = nil
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	change := s.changeOn(ref, i, nil)
	s.sensitive = s.sensitive || change.Sensitive
	live, err := mutate.Read(ctx, change)
	if errclass.Is(err, errclass.KindNotFound) && s.txn.Spec.Changes[i].Type == api.Await {
		live, err = nil, nil
	}
	if err != nil {
		return nil, s.explainDenied(ctx, change, []string{"get"}, err)
	}
	for j := range s.txn.Status.Items {
		if err := notDeletedBy(s.txn, j, s.txn.Status.Items[i].Target, live); err != nil {
			return nil, err
		}
	}
	s.known[i] = live
	return live, nil
}

// looked returns the objects that were looked at; none if one is of a kind that is not served: that
// it comes to be is not a change of an object.
func (s *sight) looked() []objectid.ID {
	var out []objectid.ID
	for i := range s.known {
		ref, err := s.refOf(i)
		if err != nil {
			return nil
		}
		out = append(out, ref.ID())
	}
	return out
}

// refOf returns the target of an item. That of an Await may be of a kind that is not served
// yet, or was not when the Transaction was accepted.
func (s *sight) refOf(i int) (target.Ref, error) {
	item := s.txn.Status.Items[i]
	switch {
	case item.Type == api.Await:
		return s.resolver.Resolve(item.Target, s.txn.Namespace, nil)
	case item.Resource == "":
		return target.Ref{}, errclass.New(errclass.Retryable, errclass.KindNotFound, "resolve", item.Target.String(), "it was not served when the Transaction was accepted")
	default:
		return refOf(item)
	}
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
func compiled(t *api.Transaction, text string, compile func(string) (*expression.Expression, error)) (*expression.Expression, error) {
	e, err := compile(text)
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
	type gate struct {
		field, text string
		compile     func(string) (*expression.Expression, error)
	}
	if change.Activation != nil && change.Activation.Expression != "" {
		if _, err := expression.CompileKinds(change.Activation.Expression); err != nil {
			return malformedActivation(change.Target, err)
		}
	}
	gates := []gate{{"when", change.When, expression.Compile}}
	if change.ReadyWhen != nil {
		gates = append(gates, gate{"readyWhen", change.ReadyWhen.Expression, expression.Compile})
	}
	if change.GoneWhen != nil {
		gates = append(gates, gate{"goneWhen", change.GoneWhen.Expression, expression.Compile})
	}
	if change.FailWhen != nil {
		gates = append(gates, gate{"failWhen", change.FailWhen.Expression, expression.Compile},
			gate{"failWhen.messageExpression", change.FailWhen.MessageExpression, expression.CompileText})
	}
	if change.Rollback != nil {
		if err := checkRollback(change); err != nil {
			return err
		}
	}
	for _, g := range gates {
		if g.text == "" {
			continue
		}
		if _, err := compiled(t, g.text, g.compile); err != nil {
			return errclass.New(errclass.Terminal, errclass.Invalid, "compile "+g.field+" of", change.Target.String(), "%w", err).
				WithHint("see the Common Expression Language in the documentation of Kubernetes; object is the target, objects.NAME that of another change")
		}
	}
	return nil
}

// checkRollback refuses a rollback.readyWhen that cannot be evaluated. An undo has not all changes
// of the Transaction that it undoes, so the expression may ask for the target alone.
func checkRollback(change api.Change) error {
	text := change.Rollback.ReadyWhen.Expression
	if text == "" {
		return nil
	}
	e, err := expression.Compile(text)
	if err == nil && len(e.Names()) > 0 {
		err = fmt.Errorf("it asks for objects.%s, and may ask for object alone", e.Names()[0])
	}
	if err == nil {
		return nil
	}
	return errclass.New(errclass.Terminal, errclass.Invalid, "compile rollback.readyWhen of", change.Target.String(), "%w", err).
		WithHint("see the Common Expression Language in the documentation of Kubernetes; object is the target as it is after the compensation")
}
