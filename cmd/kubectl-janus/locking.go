package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	authnv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/settings"
	"janus.io/janus/lockmgr"
)

// locking is one call of hold or release.
type locking struct {
	*session
	holder string
	system string
	kept   string // how; empty for as janusd says
	lasts  time.Duration
	key    lockmgr.Key
	locks  *lockmgr.Manager
}

func (l *locking) addTo(cmd *cobra.Command) {
	cmd.Flags().StringVar(&l.holder, "holder", "", "who holds the lock; the default is your user name")
	cmd.Flags().StringVar(&l.kept, "locks", "", "what has a Lease for its `locks`, as janusd's flag --locks says: targets or namespaces; the default is what janusd tells in its ConfigMap "+settings.Name)
	cmd.Flags().StringVar(&l.system, "system-namespace", systemNamespace, "the namespace of janusd, which has the locks of objects without a namespace")
}

func newLocksRelease(s *session) *cobra.Command {
	l := &locking{session: s, lasts: time.Minute}
	cmd := &cobra.Command{
		Use: "release KIND/NAME", Short: "Release the lock of an object that you hold", Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := l.find(cmd.Context(), args[0]); err != nil {
				return err
			}
			holders, err := l.locks.HoldersOf(cmd.Context(), l.key)
			switch {
			case err != nil:
				return fmt.Errorf("look who holds the lock of %s: %w", l.key, err)
			case len(holders) == 0:
				s.print("%s is not locked", l.key)
				return nil
			case !slices.Contains(holders, l.holder):
				return fmt.Errorf("%s is locked by %s, and not by %s: it is released by its holder, or when its time runs out", l.key, namesAll(holders), l.holder)
			}
			if err := l.release(cmd.Context()); err != nil {
				return err
			}
			s.print("the lock of %s is released", l.key)
			return nil
		},
	}
	l.addTo(cmd)
	return cmd
}

// find finds the object, and who we are.
func (l *locking) find(ctx context.Context, text string) error {
	if l.lasts < time.Second {
		return errors.New("--for: a lock lasts one second at least")
	}
	namespace, err := l.namespace()
	if err != nil {
		return err
	}
	v, err := l.surveyor(namespace)
	if err != nil {
		return err
	}
	gvk, gvr, t, err := v.named(text)
	if err != nil {
		return err
	}
	l.key = lockmgr.Key{ID: objectid.ID{Group: gvk.Group, Resource: gvr.Resource, Namespace: t.Namespace, Name: t.Name}, Kind: gvk.Kind}
	client, err := l.kube()
	if err != nil {
		return err
	}
	leases, err := l.leases(ctx, client)
	if err != nil {
		return err
	}
	l.locks = lockmgr.New(leases, lockmgr.Options{Namespace: l.system, Clock: clock.RealClock{}})
	if l.holder != "" {
		return nil
	}
	review, err := client.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authnv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("ask the cluster who you are, for the lock to name: %w; or pass --holder", err)
	}
	l.holder = review.Status.UserInfo.Username
	return nil
}

// leases are those of the locks, as janusd keeps them. An earlier one does not say how: it has a Lease for
// each target.
func (l *locking) leases(ctx context.Context, client kubernetes.Interface) (coordinationv1client.LeasesGetter, error) {
	told, err := l.settings(ctx, l.system)
	var untold untoldError
	switch {
	case !slices.Contains([]string{"", settings.LeaseOfTarget, settings.LeaseOfNamespace}, l.kept):
		return nil, fmt.Errorf("--locks=%s: want %s or %s", l.kept, settings.LeaseOfTarget, settings.LeaseOfNamespace)
	case l.kept == "" && err != nil && !errors.As(err, &untold):
		return nil, fmt.Errorf("find out how janusd keeps locks: %w; or pass --locks, as janusd has it", err)
	case cmp.Or(l.kept, told.Locks) == settings.LeaseOfNamespace:
		return leasetable.New(client.CoordinationV1(), l.system), nil
	default:
		return client.CoordinationV1(), nil
	}
}

func (l *locking) who() lockmgr.Holder { return lockmgr.Holder{Identity: l.holder, TTL: l.lasts} }

func (l *locking) acquire(ctx context.Context) error {
	_, err := l.locks.Acquire(ctx, l.who(), []lockmgr.Key{l.key})
	var held *lockmgr.HeldError
	if errors.As(err, &held) {
		holder := api.DescribeHolder(held.Holder)
		if held.Others > 0 {
			holder += fmt.Sprintf(" and %d more", held.Others)
		}
		return fmt.Errorf("%s is locked by %s: wait until it is released, or expires; kubectl janus locks list -n %s shows when that is", l.key, holder, l.key.Namespace)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", l.key, err)
	}
	return nil
}

func (l *locking) release(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 30*time.Second)
	defer cancel()
	if err := l.locks.Release(ctx, l.who(), []lockmgr.Key{l.key}); err != nil {
		return fmt.Errorf("release the lock of %s: %w", l.key, err)
	}
	return nil
}
