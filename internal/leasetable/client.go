package leasetable

import (
	"context"
	"fmt"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
)

// Client is a client of Leases that are in tables, but for those of one namespace, which are objects. It is
// safe for use by many goroutines.
type Client struct {
	objects coordinationv1client.LeasesGetter
	apart   string
	tables  tables
}

// New returns a Client. Leases of the namespace apart are objects: those of cluster-scoped targets, which
// Transactions of all namespaces would write into one table.
func New(objects coordinationv1client.LeasesGetter, apart string) *Client {
	return &Client{objects: objects, apart: apart, tables: tables{of: map[string]*table{}}}
}

// Leases implements LeasesGetter. What is not about single Leases, or a list, is about objects.
func (c *Client) Leases(namespace string) coordinationv1client.LeaseInterface {
	objects := c.objects.Leases(namespace)
	if namespace == c.apart || namespace == metav1.NamespaceAll {
		return objects
	}
	return &leases{objects, namespace, &c.tables}
}

// leases are those of one namespace.
type leases struct {
	coordinationv1client.LeaseInterface
	namespace string
	tables    *tables
}

// Create implements LeaseInterface.
func (l *leases) Create(ctx context.Context, lease *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	lease = lease.DeepCopy()
	lease.Namespace = l.namespace
	return one(l.ask(ctx, &ask{name: lease.Name, change: creation(lease), creates: true, lease: lease}))
}

// Update implements LeaseInterface.
func (l *leases) Update(ctx context.Context, lease *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	return one(l.ask(ctx, &ask{name: lease.Name, change: update(lease), lease: lease}))
}

// Delete implements LeaseInterface.
func (l *leases) Delete(ctx context.Context, name string, options metav1.DeleteOptions) error {
	_, err := l.ask(ctx, &ask{name: name, change: deletion(name, options.Preconditions)})
	return err
}

// Get implements LeaseInterface.
func (l *leases) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	return one(l.ask(ctx, &ask{name: name, change: reading(name)}))
}

// List implements LeaseInterface. It knows the selector of labels alone.
func (l *leases) List(ctx context.Context, options metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	selector, err := labels.Parse(options.LabelSelector)
	if err != nil {
		return nil, fmt.Errorf("list the Leases of namespace %s: %w", l.namespace, err)
	}
	found, err := l.ask(ctx, &ask{change: listing(selector)})
	if err != nil {
		return nil, err
	}
	list := &coordinationv1.LeaseList{}
	for _, lease := range found {
		list.Items = append(list.Items, *lease.DeepCopy())
	}
	return list, nil
}

func (l *leases) ask(ctx context.Context, a *ask) ([]*coordinationv1.Lease, error) {
	a.done = make(chan struct{})
	return l.tables.ask(ctx, l.LeaseInterface, l.namespace, a)
}

// one is the answer that is one Lease, as the caller may change it.
func one(found []*coordinationv1.Lease, err error) (*coordinationv1.Lease, error) {
	if err != nil {
		return nil, err
	}
	return found[0].DeepCopy(), nil
}
