package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
)

// wishes are what run and plan know of the Transaction that they make.
type wishes struct {
	sources
	sensitivity
	name        string
	set         string
	prune       bool
	account     string
	timeout     time.Duration
	lockTimeout time.Duration
	order       string
	keepOrder   bool
	policy      string
	onDelete    string
	onFailure   string
	ttl         time.Duration
	acceptLoss  bool
	approval    bool
	ready       readies
	planOut     output    // of a plan
	defaults    bool      // a plan shows what the API server adds
	survey      *surveyor // of the manifests, once there is one
}

func (w *wishes) addTo(cmd *cobra.Command) {
	f := cmd.Flags()
	w.sources.addTo(cmd)
	f.StringVar(&w.name, "name", "", "the name of the Transaction; the default is made up from that of the manifests")
	f.StringVar(&w.set, "set", "", "the name of a set of manifests: the same manifests give a Transaction of the same name, and are brought into effect once")
	f.BoolVar(&w.prune, "prune", false, "also delete what earlier runs with the same --set have made and the manifests no longer have")
	f.StringVarP(&w.account, accountFlag, "s", "", accountHelp)
	f.DurationVar(&w.timeout, "transaction-timeout", 0, "spec.timeout: how long the changes may take before they are rolled back")
	f.DurationVar(&w.lockTimeout, "lock-timeout", 0, "spec.lockTimeout: how long a lock outlives a janusd that is away")
	f.BoolVar(&w.keepOrder, "keep-order", false, "make the changes in the order of the manifests; without it what others need comes first")
	choose(cmd, &w.order, "order", "spec.order: List, or Graph for changes that need not wait for each other", api.OrderList, api.OrderGraph)
	choose(cmd, &w.policy, "conflict-policy", "spec.conflictPolicy: Fail, or Force to roll back over what others have written", api.ConflictFail, api.ConflictForce)
	choose(cmd, &w.onDelete, "on-delete", "spec.onDelete: if the Transaction is deleted while it runs, Release (the default) stops and leaves its changes, Rollback rolls them back", api.DeleteRelease, api.DeleteRollback)
	choose(cmd, &w.onFailure, "on-failure", "spec.onFailure: if a change fails, Rollback (the default) rolls back what has landed, Continue makes all that does not depend on it", api.FailureRollback, api.FailureContinue)
	f.DurationVar(&w.ttl, "ttl", 0, "spec.ttlSecondsAfterFinished: delete the Transaction so long after its end")
	f.BoolVar(&w.acceptLoss, "accept-loss", false, "also make changes that cannot be rolled back completely")
	f.BoolVar(&w.approval, "require-approval", false, "spec.approval: change nothing until someone has approved the plan")
	w.ready.addTo(cmd)
	w.sensitivity.addTo(cmd)
}

// transaction is what the wishes come to: the Transaction in the manifests if they are one,
// else one that brings them into effect.
func (w *wishes) transaction(ctx context.Context, s *session) (draft, error) {
	if err := w.ready.check(); err != nil {
		return draft{}, err
	}
	namespace, manifests, err := w.manifests(ctx, s)
	if err != nil {
		return draft{}, err
	}
	for _, m := range manifests {
		if m.GroupVersionKind().GroupKind() == api.Kind.GroupKind() {
			u, err := w.theirs(s, m.Unstructured, len(manifests), namespace)
			if err != nil {
				return draft{}, err
			}
			return w.asItStands(ctx, s, u)
		}
	}
	return w.ours(ctx, s, manifests, namespace)
}

// manifests reads them, for a namespace.
func (w *wishes) manifests(ctx context.Context, s *session) (namespace string, list []manifest, err error) {
	if !w.given() {
		return "", nil, errors.New("no changes are given: name manifests with -f or -k, or what is to be deleted with --delete")
	}
	if namespace, err = s.namespace(); err != nil {
		return "", nil, err
	}
	list, err = w.read(ctx, s, namespace)
	return namespace, list, err
}

// theirs is a Transaction that another client has written. It is made as it stands.
func (w *wishes) theirs(s *session, u *unstructured.Unstructured, manifests int, namespace string) (*unstructured.Unstructured, error) {
	if manifests > 1 || len(w.remove) > 0 {
		return nil, fmt.Errorf("the manifests have Transaction %s and something else: give either one Transaction, or what one is to be made of", u.GetName())
	}
	if w.account != "" || w.name != "" || w.set != "" || w.prune || w.keepOrder || w.timeout != 0 || w.lockTimeout != 0 || w.order != "" || w.policy != "" || w.onDelete != "" || w.onFailure != "" || w.ttl != 0 || w.acceptLoss || w.approval || w.ready.described() {
		return nil, fmt.Errorf("transaction %s says itself what it is: leave out the flags that describe one", u.GetName())
	}
	if given := *s.flags.Namespace; given != "" && u.GetNamespace() != "" && u.GetNamespace() != given {
		return nil, fmt.Errorf("transaction %s is of namespace %s, and --namespace says %s: leave it out, or pass --namespace=%s",
			u.GetName(), u.GetNamespace(), given, u.GetNamespace())
	}
	if u.GetNamespace() == "" {
		u.SetNamespace(namespace)
	}
	return u, nil
}

// asItStands is the draft of a Transaction that another client has written. Only if it is too
// large its contents are stored beside it.
func (w *wishes) asItStands(ctx context.Context, s *session, u *unstructured.Unstructured) (draft, error) {
	d := draft{Unstructured: u}
	t, err := typed(u.DeepCopy())
	if err != nil {
		return d, nil //nolint:nilerr // the API server says what is wrong with it
	}
	size, err := expectedBytes(t)
	if err != nil || size <= plan.MaxBytes {
		return d, err
	}
	d.secret, err = w.hider(ctx, s, t.Spec.Changes)
	return d, err
}

// ours is the draft of a Transaction that brings manifests into effect and deletes what is to go.
func (w *wishes) ours(ctx context.Context, s *session, manifests []manifest, namespace string) (draft, error) {
	t, err := w.proposed(ctx, s, manifests, namespace)
	if err != nil {
		return draft{}, err
	}
	s.warn(w.survey.warnings)
	u, err := untyped(t)
	if err != nil {
		return draft{}, err
	}
	secret, err := w.hider(ctx, s, t.Spec.Changes)
	if err != nil {
		return draft{}, err
	}
	d := draft{Unstructured: u, hidden: secret.in(t.Spec.Changes), secret: secret, found: w.survey.found, looked: w.survey.looked}
	return d, w.durations(u)
}

// proposed is a Transaction that brings manifests into effect and deletes what is to go.
func (w *wishes) proposed(ctx context.Context, s *session, manifests []manifest, namespace string) (t *api.Transaction, err error) {
	if w.prune && w.set == "" {
		return nil, errors.New("--prune deletes what a set no longer has: name the set with --set")
	}
	if w.set != "" {
		if w.name != "" {
			return nil, errors.New("--set names the Transaction: leave out --name")
		}
		if err := checkSet(w.set); err != nil {
			return nil, err
		}
	}
	if w.account, err = s.account(ctx, namespace, w.account); err != nil {
		return nil, err
	}
	if w.survey, err = s.surveyor(namespace); err != nil {
		return nil, err
	}
	t = &api.Transaction{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: w.name, Annotations: artifactsOf(manifests)}}
	if w.name == "" {
		t.GenerateName = w.nameOfSource() + "-"
	}
	t.Spec = api.TransactionSpec{
		ServiceAccountName: w.account, Order: api.OrderPolicy(w.order),
		ConflictPolicy: api.ConflictPolicy(w.policy), OnDelete: api.DeletePolicy(w.onDelete), OnFailure: api.FailurePolicy(w.onFailure),
	}
	if w.approval {
		t.Spec.Approval = &api.Approval{Required: true}
	}
	if !w.keepOrder {
		manifests = inOrder(manifests)
	}
	return t, w.fill(ctx, s, w.survey, t, manifests)
}

// fill gives a Transaction its changes.
func (w *wishes) fill(ctx context.Context, s *session, v *surveyor, t *api.Transaction, manifests []manifest) (err error) {
	var set *applySet
	if w.set != "" {
		if set, err = v.applySet(ctx, w.set); err != nil {
			return err
		}
		v.set = set
		if manifests, err = set.mark(manifests); err != nil {
			return err
		}
	}
	if t.Spec.Changes, err = v.changes(ctx, manifests); err != nil {
		return err
	}
	awaits, err := w.ready.awaits(t.Spec.Changes)
	if err != nil {
		return err
	}
	t.Spec.Changes = append(t.Spec.Changes, awaits...)
	for _, text := range w.remove {
		change, exists, err := v.removal(ctx, text)
		if err != nil {
			return err
		}
		if !exists {
			s.say("%s does not exist: its Delete will change nothing", change.Target.String())
		}
		t.Spec.Changes = append(t.Spec.Changes, change)
	}
	if set != nil {
		if err := w.inSet(ctx, v, t, set); err != nil {
			return err
		}
	}
	for i := range t.Spec.Changes {
		// Of a Create and of an Await there is nothing to lose, and the API server refuses to hear of it.
		mayLose := t.Spec.Changes[i].Type != api.Create && t.Spec.Changes[i].Type != api.Await
		t.Spec.Changes[i].AcceptLoss = w.acceptLoss && mayLose
	}
	return nil
}

// inSet makes a Transaction one of a set: it is named after that, keeps its parent, and deletes
// what the set has no more, if that is wanted.
func (w *wishes) inSet(ctx context.Context, v *surveyor, t *api.Transaction, set *applySet) error {
	if err := w.nameBySet(t); err != nil {
		return err
	}
	parent, err := v.change(ctx, set.parentFor(t.Namespace, t.Spec.Changes, w.prune))
	if err != nil {
		return err
	}
	t.Spec.Changes = slices.Insert(t.Spec.Changes, 0, parent)
	gone, err := v.prune(ctx, set, t.Spec.Changes)
	if !w.prune {
		v.warnings = append(v.warnings, unpruned(gone)...)
		return nil // Who may not list what is there is not told of it.
	}
	t.Spec.Changes = append(t.Spec.Changes, gone...)
	return err
}

// nameBySet names a Transaction after its set and its input.
func (w *wishes) nameBySet(t *api.Transaction) (err error) {
	t.GenerateName = ""
	t.Labels = map[string]string{setLabel: w.set}
	t.Name, err = nameInSet(w.set, w.prune, &t.Spec)
	return err
}

// durations sets those that were given.
func (w *wishes) durations(u *unstructured.Unstructured) error {
	for field, d := range map[string]time.Duration{"timeout": w.timeout, "lockTimeout": w.lockTimeout} {
		if d == 0 {
			continue
		}
		if err := unstructured.SetNestedField(u.Object, d.String(), "spec", field); err != nil {
			return fmt.Errorf("set spec.%s: %w", field, err)
		}
	}
	if w.ttl == 0 {
		return nil
	}
	if err := unstructured.SetNestedField(u.Object, int64(w.ttl/time.Second), "spec", "ttlSecondsAfterFinished"); err != nil {
		return fmt.Errorf("set spec.ttlSecondsAfterFinished: %w", err)
	}
	return nil
}
