package controller

import (
	"context"
	"fmt"
	"maps"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	txn "janus.io/janus/api/v1alpha1"

	api "janus.io/janus/api/packages/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/packages"
	"janus.io/janus/packages/change"
	"janus.io/janus/packages/compile"
	"janus.io/janus/packages/controller/progress"
	"janus.io/janus/packages/image"
)

// Limits of what is read of images for one plan, in bytes of YAML: janusd shares its memory with
// all Transactions. test/e2e/size measures how much a plan takes.
const (
	maxPackage  = 16 << 20
	maxPackages = 24 << 20
)

// plan checks the change, records what came of it, and makes the Transaction of the attempt.
func (c *Controller) plan(ctx context.Context, p *api.PackageTransaction) (*api.PackageTransaction, error) {
	if ref := p.Status.TransactionRef; ref != nil {
		// That of the last attempt, whose outcome is recorded.
		if err := c.store.letGoOf(ctx, p, ref.Name); err != nil {
			return p, err
		}
	}
	made, err := c.checkedInTime(ctx, p)
	if ctx.Err() != nil {
		return p, ctx.Err()
	}
	if err != nil {
		progress.Unchecked(p, c.Policy, c.Clock.Now(), reasonOf(err), err.Error())
	}
	// From here on no other process has made anything of this attempt, or this write fails.
	if p, err = c.record(ctx, p); err != nil || made == nil {
		return p, err
	}
	c.Log.Info("making the Transaction of a PackageTransaction", zap.String("packageTransaction", p.Name), zap.String("transaction", made.Namespace+"/"+made.Name))
	err = c.store.create(ctx, p, made)
	if apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsNotFound(err) || apierrors.IsBadRequest(err) {
		progress.Unmade(p, c.Policy, c.Clock.Now(), err.Error())
		return c.record(ctx, p)
	}
	return p, err
}

// checkedInTime is check within the time that it may take: no other PackageTransaction is run meanwhile,
// and a deletion of this one is not heeded, however slow the registries are.
func (c *Controller) checkedInTime(ctx context.Context, p *api.PackageTransaction) (*txn.Transaction, error) {
	within, cancel := context.WithTimeout(ctx, c.CheckTimeout)
	defer cancel()
	made, err := c.check(within, p)
	if err != nil && within.Err() != nil && ctx.Err() == nil {
		return nil, fmt.Errorf("the change could not be checked within %s: %w; see whether its registries answer", c.CheckTimeout, err)
	}
	return made, err
}

// reasonOf is the reason of a check that could not be made.
func reasonOf(err error) string {
	if apierrors.IsForbidden(err) || errclass.Is(err, errclass.AccessDenied) || errclass.Is(err, errclass.ServiceAccountGone) {
		return progress.AccessDenied
	}
	return progress.ValidationFailed
}

// checked checks the change, changes the status accordingly, and returns the Transaction to make;
// nil if there is none.
func (c *Controller) checked(ctx context.Context, p *api.PackageTransaction) (*txn.Transaction, error) {
	account := types.NamespacedName{Namespace: p.Spec.ServiceAccountRef.Namespace, Name: p.Spec.ServiceAccountRef.Name}
	cluster, err := c.Act(ctx, account)
	if err != nil {
		return nil, err
	}
	request, err := requested(p)
	if err != nil {
		return nil, err
	}
	planner := packages.Planner{
		Cluster: cluster, Crossplane: packages.Crossplane(ctx, cluster, c.Crossplane), MaxBytes: maxPackages,
		Registries: packages.PullingWithSecrets(cluster, c.Crossplane, c.Patience, maxPackage),
	}
	plan, err := planner.Plan(ctx, request)
	if err != nil {
		return nil, err
	}
	if !progress.Checked(p, append(plan.Findings, progress.AsAsked(p, plan.Change)...), c.Policy, c.Clock.Now()) {
		return nil, nil
	}
	p.Status.ProposedLockPackages = progress.Proposed(plan.Change)
	if p.Spec.DryRun || len(plan.Change.Steps) == 0 {
		progress.Done(p, c.Clock.Now())
		return nil, nil
	}
	return c.compiled(p, plan.Change)
}

// requested is what is asked of the planner.
func requested(p *api.PackageTransaction) (packages.Request, error) {
	r := packages.Request{Type: change.Type(p.Spec.Change)}
	switch {
	case p.Spec.Delete != nil:
		r.Targets = []string{p.Spec.Delete.Source}
	case p.Spec.Replace != nil:
		r.Targets = []string{p.Spec.Replace.Source}
	}
	wanted := progress.Snapshot(p)
	if wanted == nil {
		return r, nil
	}
	var err error
	if r.Image, err = image.ParseReference(wanted.Spec.Package); err != nil {
		return r, err
	}
	spec, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&wanted.Spec)
	if err != nil {
		return r, fmt.Errorf("encode the spec of the package: %w", err)
	}
	delete(spec, "package")
	r.Name, r.Wish = wanted.Metadata.Name, change.Wish{Labels: wanted.Metadata.Labels, Spec: spec}
	for _, s := range wanted.Spec.PackagePullSecrets {
		r.PullSecrets = append(r.PullSecrets, s.Name)
	}
	return r, nil
}

// compiled makes the Transaction of the attempt.
func (c *Controller) compiled(p *api.PackageTransaction, of change.Change) (*txn.Transaction, error) {
	t, err := compile.Transaction(of, compile.Options{
		Namespace: p.Spec.ServiceAccountRef.Namespace, ServiceAccount: p.Spec.ServiceAccountRef.Name, LockNamespace: c.Crossplane,
		PackageTimeout: c.PackageTimeout, Timeout: c.Timeout, Labels: map[string]string{api.LabelTransaction: p.Name},
		AcceptLoss: p.Spec.Allow.DataLoss,
	})
	if err != nil {
		return nil, err
	}
	t.Name = progress.Name(p)
	t.Labels = maps.Clone(p.Labels) // By which the janusd is chosen that runs it.
	if t.Labels == nil {
		t.Labels = map[string]string{}
	}
	t.Labels[api.LabelTransaction] = p.Name
	t.Finalizers = []string{api.OutcomeFinalizer}
	t.OwnerReferences = []metav1.OwnerReference{{APIVersion: api.GroupVersion.String(), Kind: api.Kind.Kind, Name: p.Name, UID: p.UID}}
	t.Spec.OnDelete = txn.DeleteRollback
	return t, nil
}
