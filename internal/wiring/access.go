package wiring

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	authzv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/fanout"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate"
)

// question is one thing that a ServiceAccount may be allowed to do.
type question struct {
	verb, group, version, resource, namespace, name string
}

// everywhere is the same question about all namespaces.
func (q question) everywhere() question {
	q.namespace = ""
	return q
}

// mayDo returns what the ServiceAccount may not do of all that some items need. A no counts
// if the API server was ready before it was asked: it may have become so since it said
// that the first time. A yes of a short time ago counts unless all is to be asked again.
func (s session) mayDo(ctx context.Context, items []int, anew bool) ([]plan.Problem, error) {
	answers, err := s.askAll(ctx, items, anew)
	if err != nil {
		return nil, err
	}
	problems, err := s.denials(ctx, items, answers)
	if err != nil || len(problems) == 0 {
		return nil, err
	}
	if err := s.id.Ready(ctx); err != nil {
		return nil, err
	}
	maps.DeleteFunc(answers, func(_ question, yes bool) bool { return !yes })
	return s.denials(ctx, items, answers)
}

// askAll asks, side by side, what is asked of all objects of a kind in a namespace.
func (s session) askAll(ctx context.Context, items []int, anew bool) (map[question]bool, error) {
	answers, known := map[question]bool{}, map[question]bool{}
	var questions []question
	for _, i := range items {
		ref, err := refOf(s.txn.Status.Items[i])
		change, compensation := s.verbs(i)
		if err != nil {
			continue // That is found out by who goes through them.
		}
		for _, verb := range append(change, compensation...) {
			switch q := questionAbout(ref, verb); {
			case !anew && s.rights.granted(s.id.UID, q):
				answers[q] = true
			case !known[q]:
				known[q], questions = true, append(questions, q)
			}
		}
	}
	refused := 0
	for batch := range slices.Chunk(s.narrow(ctx, questions, answers), mostRefused) {
		allowed, errs := make([]bool, len(batch)), make([]error, len(batch))
		fanout.Do(askers, len(batch), func(n int) { allowed[n], errs[n] = s.ask(ctx, batch[n]) })
		if found := notNil(errs); len(found) > 0 {
			return nil, found[0]
		}
		for n, q := range batch {
			if answers[q] = allowed[n]; !allowed[n] {
				refused++
			}
		}
		if refused >= mostRefused {
			break // What is wrong is clear by then.
		}
	}
	return answers, nil
}

const (
	// mostRefused is how many refusals are looked for. What may not be done besides is refused when
	// it is tried, if there is any trying.
	mostRefused = mostProblems
	// manyNamespaces is of how many the same is asked for all namespaces at once, first.
	manyNamespaces = 10
)

// narrow asks what would be asked of many namespaces for all of them at once, and returns the
// questions that are left: who may do something in all namespaces may do so in each.
func (s session) narrow(ctx context.Context, questions []question, answers map[question]bool) []question {
	same := map[question]int{}
	for _, q := range questions {
		same[q.everywhere()]++
	}
	var wide []question
	for q, n := range same {
		if n > manyNamespaces {
			wide = append(wide, q)
		}
	}
	allowed := make([]bool, len(wide))
	// An error is met again by the questions that are left.
	fanout.Do(askers, len(wide), func(n int) { allowed[n], _ = s.ask(ctx, wide[n]) })
	may := map[question]bool{}
	for n, q := range wide {
		may[q] = allowed[n]
	}
	return slices.DeleteFunc(questions, func(q question) bool {
		if may[q.everywhere()] {
			answers[q] = true
		}
		return may[q.everywhere()]
	})
}

// verbs are those that item i needs, and those that rolling it back needs: whether it makes its change
// or deletes its target instead.
func (s session) verbs(i int) (making, rollingBack []string) {
	making, rollingBack = mutate.Verbs(plan.ChangeOf(s.txn, i).Type)
	if !plan.MayBeDeleted(s.txn, i) {
		return making, rollingBack
	}
	also, back := mutate.Verbs(api.Delete)
	return unite(making, also), unite(rollingBack, back)
}

// unite adds to a list what it does not have.
func unite(list, others []string) []string {
	out := slices.Clone(list)
	for _, one := range others {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// askers is how many questions are asked at once.
const askers = 8

// questionAbout is the question about all objects of a kind in a namespace.
func questionAbout(ref target.Ref, verb string) question {
	return question{verb: verb, group: ref.GVR.Group, version: ref.GVR.Version, resource: ref.GVR.Resource, namespace: ref.Namespace}
}

// denials asks whether the ServiceAccount may do everything that the items need:
// read each target, change it, and roll that back. It is asked before any lock is
// taken, so that nobody can lock objects that they may not touch. One question is
// asked for each verb, resource and namespace; only where that is refused is the
// object asked for by name. Refusals are reported, up to mostRefused.
func (s session) denials(ctx context.Context, items []int, answers map[question]bool) ([]plan.Problem, error) {
	var problems []plan.Problem
	for _, i := range items {
		item := s.txn.Status.Items[i]
		ref, err := refOf(item)
		if err != nil {
			return nil, err
		}
		change, compensation := s.verbs(i)
		for _, need := range []struct {
			verbs []string
			what  string
		}{{change, "making"}, {compensation, "rolling back"}} {
			for _, verb := range need.verbs {
				ok, err := s.allowed(ctx, ref, verb, answers)
				if err != nil {
					return nil, err
				}
				if len(problems) >= mostRefused {
					return problems, nil
				}
				if !ok {
					denied := errclass.New(errclass.Terminal, errclass.AccessDenied, verb, ref.String(),
						"ServiceAccount %s may not, and %s item %s needs it", s.id.Account, need.what, item.Name).
						WithHint(fmt.Sprintf("grant it %s on %s", verb, ref.GVR.GroupResource()))
					denied.Verb = verb
					denied.Lack = &errclass.Lack{Account: s.id.Account.String(), Verb: verb, Resource: ref.GVR.GroupResource().String()}
					problems = append(problems, plan.Problem{Item: i, Err: denied})
				}
			}
		}
	}
	return problems, nil
}

func (s session) allowed(ctx context.Context, ref target.Ref, verb string, answers map[question]bool) (bool, error) {
	q := questionAbout(ref, verb)
	for _, name := range []string{"", ref.Name} {
		q.name = name
		answer, known := answers[q]
		if !known {
			var err error
			if answer, err = s.ask(ctx, q); err != nil {
				return false, err
			}
			answers[q] = answer
		}
		if answer {
			return true, nil
		}
	}
	return false, nil
}

func (s session) ask(ctx context.Context, q question) (bool, error) {
	review, err := s.id.Access.Create(ctx, &authzv1.SelfSubjectAccessReview{Spec: authzv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authzv1.ResourceAttributes{
			Verb: q.verb, Group: q.group, Version: q.version, Resource: q.resource, Namespace: q.namespace, Name: q.name,
		},
	}}, metav1.CreateOptions{})
	if err != nil {
		return false, errclass.Wrap(err, "ask what may be done by", "ServiceAccount "+s.id.Account.String(), false)
	}
	s.rights.note(s.id.UID, q, review.Status.Allowed)
	return review.Status.Allowed, nil
}

// explainDenied tells the two meanings of 403 apart: the ServiceAccount lacks one of
// the verbs that were used on the target, or admission, such as a quota or a policy,
// refused the object. Only the first is cured by a role. An error that has a hint
// knows better.
func (s session) explainDenied(ctx context.Context, c mutate.Change, verbs []string, err error) error {
	var found *errclass.Error
	if !errors.As(err, &found) || found.Reason != errclass.AccessDenied || found.Target != c.Ref.String() || found.Hint != "" {
		return err
	}
	own := *found
	s.rights.forget(s.id.UID)
	for _, verb := range verbs {
		ok, askErr := s.allowed(ctx, c.Ref, verb, map[question]bool{})
		if askErr != nil {
			return err
		}
		if !ok {
			own.Verb = verb
			own.Hint = fmt.Sprintf("grant ServiceAccount %s %s on %s", s.id.Account, verb, c.Ref.GVR.GroupResource())
			return &own
		}
	}
	own.Reason = errclass.Rejected
	own.Hint = own.Refuser.WayOut()
	return &own
}
