package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/leasetable"
)

// node is a line of a tree.
type node struct {
	text     string
	children []node
}

// itemNode is an item in the tree of a Transaction. Below it is what is made after it.
type itemNode struct {
	Name    string `json:"name"`
	Type    string `json:"type"`
	Target  string `json:"target"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
	// Waiting says for how long it has been waited for, and for what.
	Waiting string `json:"waiting,omitempty"`
	// DependsOn are the items that come before it, the one above it included.
	DependsOn []string `json:"dependsOn,omitempty"`
	// WaitsForLockOf are those who hold the lock that it waits for.
	WaitsForLockOf []string   `json:"waitsForLockOf,omitempty"`
	Lock           string     `json:"lock,omitempty"`
	LockHolder     string     `json:"lockHolder,omitempty"`
	BeforeImage    string     `json:"beforeImage,omitempty"`
	CreatedUID     string     `json:"createdUID,omitempty"`
	RecreatedUID   string     `json:"recreatedUID,omitempty"`
	Then           []itemNode `json:"then,omitempty"`

	sentence string
	after    []string // what it depends on, each with its state
	// unread says why something is missing.
	unread []string
}

// treeOf is a Transaction with its items.
type treeOf struct {
	Namespace string     `json:"namespace"`
	Name      string     `json:"name"`
	Phase     string     `json:"phase"`
	Progress  string     `json:"progress,omitempty"`
	Reason    string     `json:"reason,omitempty"`
	Message   string     `json:"message,omitempty"`
	OwnedBy   string     `json:"ownedBy,omitempty"`
	Items     []itemNode `json:"items"`
	// Unread says what is not shown of locks, and why.
	Unread []string `json:"unread,omitempty"`
}

func newTree(s *session) *cobra.Command {
	var out output
	var verbose bool
	cmd := &cobra.Command{
		Use: "tree NAME", Short: "Show a Transaction with its items, and what each waits for", Args: cobra.ExactArgs(1), ValidArgsFunction: s.names,
		Long: `Show a Transaction with its items, and what each waits for. An item stands below the one that it depends on; if it depends
on several, below the last of them. With -v, names of locks, keys of before-images and uids are shown too.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			t, err := s.read(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			items, unread := s.itemNodes(cmd.Context(), t)
			if items = nested(items); !out.text() {
				_, reason, message := reasonOf(t)
				return s.printData(out, treeOf{t.Namespace, t.Name, string(phaseOf(t)), t.Status.Progress, reason, message, t.DescribeOwners(), items, unread})
			}
			top := fmt.Sprintf("Transaction %s/%s: %s", t.Namespace, t.Name, sentence(t))
			if owners := t.DescribeOwners(); owners != "" {
				top += " (owned by " + owners + ")"
			}
			s.print("%s", top)
			s.branches(linesOf(items, verbose), "")
			for _, text := range unread {
				s.say("%s", text)
			}
			return nil
		},
	}
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "show also locks, keys of before-images and uids")
	out.addTo(cmd)
	return cmd
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

// linesOf are the lines for items: what is known of one, and then what comes after it.
func linesOf(items []itemNode, verbose bool) []node {
	var out []node
	for _, item := range items {
		n := node{text: item.sentence}
		leaf := func(format string, args ...any) {
			n.children = append(n.children, node{text: fmt.Sprintf(format, args...)})
		}
		if len(item.WaitsForLockOf) > 0 {
			leaf("waits for its lock, held by %s", strings.Join(item.WaitsForLockOf, " and "))
		}
		for _, text := range item.unread {
			leaf("%s", text)
		}
		if len(item.after) > 1 { // A single one stands above it.
			leaf("after %s", strings.Join(item.after, ", "))
		}
		for _, one := range []struct{ text, value string }{
			{"lock %s", item.Lock}, {"before-image %s", item.BeforeImage}, {"made, with uid %s", item.CreatedUID}, {"re-created, with uid %s", item.RecreatedUID},
		} {
			if verbose && one.value != "" {
				leaf(one.text+after(", held by ", map[bool]string{true: item.LockHolder}[one.value == item.Lock]), one.value)
			}
		}
		n.children = append(n.children, linesOf(item.Then, verbose)...)
		out = append(out, n)
	}
	return out
}

// nested puts each item below the last of those that it depends on.
func nested(items []itemNode) []itemNode {
	at := map[string]int{}
	for i := range items {
		at[items[i].Name] = i
	}
	parent := make([]int, len(items))
	for i := range items {
		parent[i] = -1
		for _, name := range items[i].DependsOn {
			if on, known := at[name]; known && on > parent[i] && !under(parent, on, i) {
				parent[i] = on
			}
		}
	}
	var below func(of int) []itemNode
	below = func(of int) []itemNode {
		out := []itemNode{}
		for i := range items {
			if parent[i] == of && i != of {
				item := items[i]
				item.Then = below(i)
				out = append(out, item)
			}
		}
		return out
	}
	return below(-1)
}

// under reports whether an item is another, or below it.
func under(parent []int, i, other int) bool {
	for n := 0; i >= 0 && n <= len(parent); n++ {
		if i == other {
			return true
		}
		i = parent[i]
	}
	return false
}

// itemNodes are the items of a Transaction, or what they will be. That a lock cannot be read hides
// no item, and is said once.
func (s *session) itemNodes(ctx context.Context, t *api.Transaction) (out []itemNode, unread []string) {
	for i := range t.Status.Items {
		n := itemNodeOf(t, i)
		if err := s.lockOf(ctx, t, &t.Status.Items[i], &n); err != nil {
			if broken := (*leasetable.BrokenError)(nil); errors.As(err, &broken) {
				err = broken // It is the same for all locks in the table.
			}
			if text := "who holds the locks is not shown: " + errclass.Message(err); !slices.Contains(unread, text) {
				unread = append(unread, text)
			}
		}
		out = append(out, n)
	}
	if len(t.Status.Items) == 0 {
		for i, c := range t.Spec.Changes {
			name, target := changeName(i, c), c.Target.String()
			out = append(out, itemNode{
				Name: name, Type: string(c.Type), Target: target, State: string(api.ItemPending), DependsOn: c.DependsOn, sentence: fmt.Sprintf("%s %s %s", name, c.Type, target),
			})
		}
	}
	return out, unread
}

func itemNodeOf(t *api.Transaction, i int) itemNode {
	item := &t.Status.Items[i]
	n := itemNode{
		Name: item.Name, Type: string(typeOf(t, i)), Target: item.Target.String(), State: string(item.State), Reason: item.Reason, Message: item.Message,
		Waiting: waited(t, i, time.Now()), CreatedUID: string(item.CreatedUID), RecreatedUID: string(item.RecreatedUID), sentence: itemSentence(t, i),
	}
	if i < len(t.Spec.Changes) {
		n.DependsOn = append(n.DependsOn, t.Spec.Changes[i].DependsOn...)
	}
	n.DependsOn = append(n.DependsOn, refersTo(t, i)...)
	for _, name := range n.DependsOn {
		n.after = append(n.after, fmt.Sprintf("%s (%s)", name, stateOf(t, name)))
	}
	if before := item.Before; before != nil && t.Status.RollbackRef != nil {
		n.BeforeImage = before.Key
	}
	return n
}

// refersTo are the changes that one depends on without saying so by dependsOn.
func refersTo(t *api.Transaction, i int) []string {
	return slices.DeleteFunc(slices.Clone(t.Status.Items[i].DependsOn), func(name string) bool {
		return i < len(t.Spec.Changes) && slices.Contains(t.Spec.Changes[i].DependsOn, name)
	})
}

// stateOf is the state of the item with a name.
func stateOf(t *api.Transaction, name string) string {
	at := slices.IndexFunc(t.Status.Items, func(i api.Item) bool { return i.Name == name })
	if at < 0 {
		return string(api.ItemPending)
	}
	return stateText(t, at, time.Now())
}
