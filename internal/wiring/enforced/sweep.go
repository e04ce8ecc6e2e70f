package enforced

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"go.uber.org/zap"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// Every is how often Run sweeps.
const Every = time.Minute

// page is how many tables are read at once.
const page = 50

// A Sweeper removes entries of Transactions that have ended or are gone, no matter who made them.
// Several may be at work at once.
type Sweeper struct {
	tables       *Tables
	transactions Transactions
	clock        clock.WithTicker
	log          *zap.Logger
}

// NewSweeper makes a Sweeper of all namespaces.
func NewSweeper(tables *Tables, transactions Transactions, c clock.WithTicker, log *zap.Logger) *Sweeper {
	return &Sweeper{tables, transactions, c, log}
}

// Run sweeps once a minute until ctx is done.
func (s *Sweeper) Run(ctx context.Context) {
	ticker := s.clock.NewTicker(Every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C():
			if err := s.Sweep(ctx); err != nil && ctx.Err() == nil {
				s.log.Warn("sweep the tables of locks", zap.Error(err))
			}
		}
	}
}

// Sweep looks at all tables once. What it cannot find out, or not remove, stays for the next
// time and does not keep it from the rest.
func (s *Sweeper) Sweep(ctx context.Context) error {
	var failed []error
	judged := map[string]bool{} // whether a holder is over
	options := metav1.ListOptions{Limit: page}
	for {
		list, err := s.tables.client.List(ctx, options)
		if err != nil {
			return errors.Join(append(failed, listing(err))...)
		}
		for i := range list.Items {
			locks, err := locksOf(&list.Items[i])
			if err == nil {
				err = s.sweep(ctx, list.Items[i].GetNamespace(), locks, judged)
			}
			if err != nil {
				failed = append(failed, err)
			}
		}
		if options.Continue = list.GetContinue(); options.Continue == "" {
			return errors.Join(failed...)
		}
	}
}

func (s *Sweeper) sweep(ctx context.Context, namespace string, locks map[string]string, judged map[string]bool) error {
	var failed []error
	over := map[string]bool{}
	for _, holder := range locks {
		if _, ok := judged[holder]; !ok {
			var err error
			if judged[holder], err = s.isOver(ctx, holder); err != nil {
				failed = append(failed, err)
			}
		}
		if judged[holder] {
			over[holder] = true
		}
	}
	if len(over) > 0 {
		// What has ended goes on only in a recovery, which is on record before it enters its
		// targets. A uid is not given twice.
		err := s.tables.remove(ctx, namespace, over, func(context.Context) error { return nil })
		if err == nil {
			s.log.Info("removed locks of Transactions that are over", zap.String("namespace", namespace), zap.Int("transactions", len(over)))
		}
		failed = append(failed, err)
	}
	return errors.Join(failed...)
}

// isOver reports whether no Transaction that runs is called that. What is no identity at all
// another client has written: nobody would ever remove it.
func (s *Sweeper) isOver(ctx context.Context, holder string) (bool, error) {
	name, uid, ok := api.ParseHolder(holder)
	if !ok {
		return true, nil
	}
	t, err := s.transactions.Read(ctx, name)
	if err == nil && t == nil { // Much follows from that: it is asked twice, as target.Confirmed does.
		t, err = s.transactions.Read(ctx, name)
	}
	if errclass.Is(err, errclass.AccessDenied) {
		return false, nil // It is another janusd's.
	}
	if err != nil {
		return false, err
	}
	return t == nil || t.UID != uid || t.Status.Phase.Terminal(), nil
}

// Check finds out whether janusd can enforce locks, before it takes any. may asks whether it
// may do something.
func Check(ctx context.Context, tables *Tables, may func(ctx context.Context, group, resource, subresource, verb, name string) (bool, error)) error {
	if _, err := tables.client.List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return listing(err)
	}
	for _, need := range []struct{ group, resource, subresource, verb, name string }{
		{api.GroupVersion.Group, api.LockTableResource.Resource, "", "create", ""},
		{api.GroupVersion.Group, api.LockTableResource.Resource, "", "update", ""},
		{"authentication.k8s.io", "userextras", target.Mark, "impersonate", target.MarkValue},
	} {
		ok, err := may(ctx, need.group, need.resource, need.subresource, need.verb, need.name)
		if err != nil {
			return fmt.Errorf("ask what janusd may do: %w", err)
		}
		if !ok {
			return fmt.Errorf("--enforce-locks: janusd may not %s %s: install deploy/enforced",
				need.verb, strings.TrimSuffix(need.resource+"/"+need.subresource, "/"))
		}
	}
	return nil
}

func listing(err error) error {
	switch {
	case apierrors.IsNotFound(err):
		return errors.New("--enforce-locks: the API server serves no LockTables: install deploy/enforced")
	case apierrors.IsForbidden(err):
		return fmt.Errorf("--enforce-locks: janusd may not list LockTables: install deploy/enforced: %w", err)
	default:
		return fmt.Errorf("list LockTables: %w", err)
	}
}
