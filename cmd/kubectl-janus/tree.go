package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/utils/clock"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/objectid"
	"janus.io/janus/lockmgr"
)

// node is a line of a tree.
type node struct {
	text     string
	children []node
}

func newTree(s *session) *cobra.Command {
	return &cobra.Command{
		Use: "tree NAME", Short: "Show a Transaction with its items, and what each waits for", Args: cobra.ExactArgs(1), ValidArgsFunction: s.names,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			top := node{text: fmt.Sprintf("Transaction %s/%s: %s", t.Namespace, t.Name, sentence(t))}
			if owners := t.DescribeOwners(); owners != "" {
				top.text += " (owned by " + owners + ")"
			}
			for i := range t.Status.Items {
				child, err := s.itemNode(cmd.Context(), t, i)
				if err != nil {
					return err
				}
				top.children = append(top.children, child)
			}
			if len(t.Status.Items) == 0 {
				for i, c := range t.Spec.Changes {
					top.children = append(top.children, node{text: fmt.Sprintf("%s %s %s", changeName(i, c), c.Type, c.Target.String())})
				}
			}
			s.print("%s", top.text)
			s.branches(top.children, "")
			return nil
		},
	}
}

func (s *session) branches(children []node, indent string) {
	for i, child := range children {
		corner, below := "├─ ", "│  "
		if i == len(children)-1 {
			corner, below = "└─ ", "   "
		}
		s.print("%s%s%s", indent, corner, child.text)
		s.branches(child.children, indent+below)
	}
}

func (s *session) itemNode(ctx context.Context, t *api.Transaction, i int) (node, error) {
	item := t.Status.Items[i]
	n := node{text: itemSentence(t, i)}
	leaf := func(format string, args ...any) {
		n.children = append(n.children, node{text: fmt.Sprintf(format, args...)})
	}
	if i < len(t.Spec.Changes) {
		for _, name := range t.Spec.Changes[i].DependsOn {
			leaf("after %s (%s)", name, stateOf(t, name))
		}
	}
	for _, name := range refersTo(t, i) {
		leaf("depends on %s (%s)", name, stateOf(t, name))
	}
	if item.LockLease != "" && !ended(t) {
		// Who may see Transactions may not see Leases for that.
		holder, err := s.holder(ctx, item.LockLease)
		switch {
		case apierrors.IsForbidden(err):
			leaf("lock %s (its holder cannot be read)", item.LockLease)
		case err != nil:
			return n, err
		default:
			leaf("lock %s, held by %s", item.LockLease, holder)
		}
	}
	if item.LockLease == "" && waitsForLocks(t) && item.Resource != "" && item.Changes() {
		holders, err := s.holders(ctx, &item)
		switch {
		case apierrors.IsForbidden(err):
			leaf("waits for its lock (whose holder cannot be read)")
		case err != nil:
			return n, err
		case len(holders) > 0:
			leaf("waits for its lock, held by %s", strings.Join(holders, " and "))
		}
	}
	if before := item.Before; before != nil && t.Status.RollbackRef != nil {
		leaf("before-image %s", before.Key)
	}
	if item.CreatedUID != "" {
		leaf("made, with uid %s", item.CreatedUID)
	}
	if item.RecreatedUID != "" {
		leaf("re-created, with uid %s", item.RecreatedUID)
	}
	return n, nil
}

// refersTo are the changes that one depends on without saying so by dependsOn.
func refersTo(t *api.Transaction, i int) []string {
	return slices.DeleteFunc(slices.Clone(t.Status.Items[i].DependsOn), func(name string) bool {
		return i < len(t.Spec.Changes) && slices.Contains(t.Spec.Changes[i].DependsOn, name)
	})
}

// stateOf is the state of the item with a name.
func stateOf(t *api.Transaction, name string) api.ItemState {
	at := slices.IndexFunc(t.Status.Items, func(i api.Item) bool { return i.Name == name })
	if at < 0 {
		return api.ItemPending
	}
	return t.Status.Items[at].State
}

// waitsForLocks reports whether a Transaction waits for the locks of its targets. It has taken none
// of them then: those that it got it has given back.
func waitsForLocks(t *api.Transaction) bool {
	_, reason, _ := reasonOf(t)
	return reason == errclass.LockHeld && !ended(t)
}

// holders says who holds the lock of the target of an item.
func (s *session) holders(ctx context.Context, item *api.Item) ([]string, error) {
	client, err := s.kube()
	if err != nil {
		return nil, err
	}
	gvk := kindOf(item.Target)
	key := lockmgr.Key{ID: objectid.ID{Group: gvk.Group, Resource: item.Resource, Namespace: item.Target.Namespace, Name: item.Target.Name}, Kind: gvk.Kind}
	var holders []string
	// A Lease of its own, or an entry in that of its namespace: who looks need not know how janusd keeps locks.
	for _, leases := range []coordinationv1client.LeasesGetter{client.CoordinationV1(), leasetable.New(client.CoordinationV1(), systemNamespace)} {
		if len(holders) == 0 && err == nil {
			holders, err = lockmgr.New(leases, lockmgr.Options{Namespace: systemNamespace, Clock: clock.RealClock{}}).HoldersOf(ctx, key)
		}
	}
	for i, holder := range holders {
		if name, _, ok := api.ParseHolder(holder); ok {
			holders[i] = name.String()
		}
		holders[i] = errclass.Printable(holders[i])
	}
	if err != nil {
		return nil, fmt.Errorf("look who holds the lock of %s: %w", key, err)
	}
	return holders, nil
}

// holder says who holds a lock, named as namespace/name.
func (s *session) holder(ctx context.Context, lease string) (string, error) {
	client, err := s.kube()
	if err != nil {
		return "", err
	}
	namespace, name := split(lease)
	l, err := leasetable.Find(ctx, client.CoordinationV1().Leases(namespace), name)
	switch {
	case apierrors.IsNotFound(err):
		return "nobody", nil
	case err != nil:
		return "", fmt.Errorf("read Lease %s: %w", lease, err)
	default:
		return holderOf(l), nil
	}
}
