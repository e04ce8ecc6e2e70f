package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/utils/ptr"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/sharedlease"
)

// lockPrefix is what the names of all locks begin with.
const lockPrefix = "janus-lock-"

func newLocks(s *session) *cobra.Command {
	cmd := &cobra.Command{
		Use: "locks", Short: "List the locks of Transactions, hold one, release one",
		Long: `Locks are Leases that keep Transactions apart, and anyone else who asks for them: nothing stops a program that does not.
While you hold the lock of an object, no Transaction changes it: those that are about to wait.`,
	}
	cmd.AddCommand(newLocksList(s), newLocksHold(s), newLocksRelease(s))
	return cmd
}

func newLocksList(s *session) *cobra.Command {
	var everywhere bool
	var out output
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
			return s.listLocks(cmd.Context(), namespace, out)
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	out.addTo(cmd)
	return cmd
}

// heldLock is a lock of the list.
type heldLock struct {
	Namespace string   `json:"namespace"`
	Lock      string   `json:"lock"`
	Holders   []string `json:"holders"`
	// Next is who is to have it alone.
	Next     string            `json:"next,omitempty"`
	Acquired *metav1.MicroTime `json:"acquired,omitempty"`
	Renewed  *metav1.MicroTime `json:"renewed,omitempty"`
	Seconds  int32             `json:"leaseDurationSeconds"`
	Expired  bool              `json:"expired"`
	// Broken says why it cannot be told whose locks a table has.
	Broken string `json:"broken,omitempty"`
}

// heldLockOf is what a Lease says of a lock.
func heldLockOf(l *coordinationv1.Lease) heldLock {
	lock := heldLock{
		Namespace: l.Namespace, Lock: strings.TrimPrefix(l.Name, lockPrefix), Holders: append([]string{}, sharedlease.Holders(l)...), Next: sharedlease.NextOf(l),
		Acquired: l.Spec.AcquireTime, Renewed: l.Spec.RenewTime, Seconds: ptr.Deref(l.Spec.LeaseDurationSeconds, 0), Expired: expired(l, time.Now()),
	}
	if err := leasetable.Broken(l); err != nil {
		lock.Broken = errclass.Message(err)
	}
	return lock
}

func (s *session) listLocks(ctx context.Context, namespace string, out output) error {
	client, err := s.kube()
	if err != nil {
		return err
	}
	list, err := client.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return fmt.Errorf("list the Leases: %w; ask for the verb list on leases.coordination.k8s.io", err)
	}
	if err != nil {
		return fmt.Errorf("list the Leases: %w", err)
	}
	leases := leasetable.Expand(list.Items)
	locks := []heldLock{}
	w := tabwriter.NewWriter(s.Out, 0, 0, 3, ' ', 0)
	for i := range leases {
		l := &leases[i]
		if !strings.HasPrefix(l.Name, lockPrefix) {
			continue
		}
		if len(locks) == 0 {
			_, _ = fmt.Fprintln(w, "NAMESPACE\tLOCK\tHOLDER\tHELD\tRENEWED\tLASTS")
		}
		lock := heldLockOf(l)
		locks = append(locks, lock)
		if lock.Broken != "" {
			write(w, "%s\t%s\t%s\t\t\t\n", lock.Namespace, lock.Lock, "broken: "+lock.Broken)
			continue
		}
		write(w, "%s\t%s\t%s\t%s\t%s\t%s\n", lock.Namespace, lock.Lock, holderOf(l), ago(lock.Acquired), ago(lock.Renewed), lasts(l, time.Now()))
	}
	if !out.text() {
		return s.printData(out, locks)
	}
	if len(locks) == 0 {
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
		holders[i] = api.DescribeHolder(holder)
	}
	text := strings.Join(holders, ", ")
	if len(holders) > 1 {
		text += " (shared)"
	}
	if next := sharedlease.NextOf(l); next != "" {
		text += "; next " + api.DescribeHolder(next)
	}
	return text
}

// namesAll names who has identities.
func namesAll(holders []string) string {
	out := make([]string, len(holders))
	for i, holder := range holders {
		out[i] = api.DescribeHolder(holder)
	}
	return strings.Join(out, " and ")
}

// lasts is for how long a lock lasts since it was renewed. One that has expired is there until
// someone takes it, or its holder renews it.
func lasts(l *coordinationv1.Lease, now time.Time) string {
	duration := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
	if expired(l, now) {
		return fmt.Sprintf("%s (expired)", duration)
	}
	return duration.String()
}

func expired(l *coordinationv1.Lease, now time.Time) bool {
	duration := time.Duration(ptr.Deref(l.Spec.LeaseDurationSeconds, 0)) * time.Second
	return l.Spec.RenewTime != nil && now.Sub(l.Spec.RenewTime.Time) > duration
}

func ago(t *metav1.MicroTime) string {
	if t == nil {
		return ""
	}
	return duration.HumanDuration(time.Since(t.Time)) + " ago"
}

// split takes namespace/name apart.
func split(text string) (namespace, name string) {
	namespace, name, _ = strings.Cut(text, "/")
	return namespace, name
}
