package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	authnv1 "k8s.io/api/authentication/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/internal/settings"
	"janus.io/janus/internal/sharedlease"
	"janus.io/janus/lockmgr"
)

// lockPrefix is what the names of all locks begin with.
const lockPrefix = "janus-lock-"

func newLocks(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "locks", Short: "List the locks of Transactions, hold one, release one",
		Long: `Locks are Leases that keep Transactions apart, and whoever else asks for them: nothing stops a program that does not.
While you hold the lock of an object, no Transaction changes it: those that are about to wait.`,
	}
	cmd.AddCommand(newLocksList(s), newLocksHold(s), newLocksRelease(s))
	return cmd
}

func newLocksList(s *session) *cobra.Command {
	var everywhere bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, Short: "List the locks that are held", Args: cobra.NoArgs,
		Long: `List the locks that are held. The next Transaction that needs a lock takes an expired one over, unless its holder renews it
first. This list judges that by the clock of this machine, and each janusd by its own.`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			namespace, err := s.namespace()
			if err != nil {
				return err
			}
			if everywhere {
				namespace = ""
			}
			return s.listLocks(cmd.Context(), namespace)
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func (s *session) listLocks(ctx context.Context, namespace string) error {
	client, err := s.kube()
	if err != nil {
		return err
	}
	list, err := client.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the Leases: %w", err)
	}
	leases := leasetable.Expand(list.Items)
	found := 0
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	for i := range leases {
		l := &leases[i]
		if !strings.HasPrefix(l.Name, lockPrefix) {
			continue
		}
		if found++; found == 1 {
			_, _ = fmt.Fprintln(w, "NAMESPACE\tLOCK\tHOLDER\tHELD\tRENEWED\tLASTS")
		}
		if broken := leasetable.Broken(l); broken != nil {
			write(w, "%s\t%s\t%s\t\t\t\n", l.Namespace, strings.TrimPrefix(l.Name, lockPrefix), "broken: "+errclass.Message(broken))
			continue
		}
		write(w, "%s\t%s\t%s\t%s\t%s\t%s\n", l.Namespace, strings.TrimPrefix(l.Name, lockPrefix), holderOf(l),
			ago(l.Spec.AcquireTime), ago(l.Spec.RenewTime), lasts(l, time.Now()))
	}
	if found == 0 {
		s.say("No locks are held.")
		return nil
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print the locks: %w", err)
	}
	return nil
}

// holderOf names the holders of a lock, and who waits to have it alone if they share it.
func holderOf(l *coordinationv1.Lease) string {
	holders := sharedlease.Holders(l)
	if len(holders) == 0 {
		holders = []string{"nobody"}
	}
	for i, holder := range holders {
		holders[i] = nameOf(holder)
	}
	text := strings.Join(holders, ", ")
	if len(holders) > 1 {
		text += " (shared)"
	}
	if next := sharedlease.NextOf(l); next != "" {
		text += "; next " + nameOf(next)
	}
	return text
}

// nameOf names who has an identity.
func nameOf(holder string) string {
	if name, _, ok := api.ParseHolder(holder); ok {
		return "Transaction " + name.String()
	}
	return holder
}

// lasts is for how long a lock lasts since it was renewed. One that has expired is there until
// someone takes it, or its holder renews it.
func lasts(l *coordinationv1.Lease, now time.Time) string {
	duration := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
	if renewed := l.Spec.RenewTime; renewed != nil && now.Sub(renewed.Time) > duration {
		return fmt.Sprintf("%s (expired)", duration)
	}
	return duration.String()
}

func ago(t *metav1.MicroTime) string {
	if t == nil {
		return ""
	}
	return duration.HumanDuration(time.Since(t.Time)) + " ago"
}

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
				return fmt.Errorf("the lock of %s is held by %s, and not by %s: what holds it releases it, or its time runs out", l.key, strings.Join(holders, " and "), l.holder)
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
		holder := held.Holder
		if held.Others > 0 {
			holder += fmt.Sprintf(" and %d more", held.Others)
		}
		return fmt.Errorf("the lock of %s is held by %s (Lease %s)", l.key, holder, held.Lease)
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

// split takes namespace/name apart.
func split(text string) (namespace, name string) {
	namespace, name, _ = strings.Cut(text, "/")
	return namespace, name
}
