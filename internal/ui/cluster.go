package ui

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/leasetable"
)

// Cluster is the Reader of a cluster.
type Cluster struct {
	dynamic   dynamic.Interface
	kube      kubernetes.Interface
	namespace string
}

var _ Reader = &Cluster{}

// NewCluster makes a Reader of the Transactions of a namespace; of all, if it is empty.
func NewCluster(dynamic dynamic.Interface, kube kubernetes.Interface, namespace string) *Cluster {
	return &Cluster{dynamic: dynamic, kube: kube, namespace: namespace}
}

// Transactions implements Reader.
func (c *Cluster) Transactions(ctx context.Context) ([]*api.Transaction, error) {
	found, _, err := c.list(ctx)
	return found, err
}

// list returns the version of the list, too.
func (c *Cluster) list(ctx context.Context) (found []*api.Transaction, version string, err error) {
	list, err := c.dynamic.Resource(api.Resource).Namespace(c.namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, "", fmt.Errorf("list Transactions: %w", err)
	}
	found = make([]*api.Transaction, 0, len(list.Items))
	for i := range list.Items {
		t, err := typed(&list.Items[i])
		if err != nil {
			return nil, "", err
		}
		found = append(found, t)
	}
	slices.SortStableFunc(found, byAge)
	return found, list.GetResourceVersion(), nil
}

func byAge(a, b *api.Transaction) int {
	return cmp.Or(a.CreationTimestamp.Compare(b.CreationTimestamp.Time), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// Transaction implements Reader.
func (c *Cluster) Transaction(ctx context.Context, namespace, name string) (*api.Transaction, error) {
	if c.namespace != "" && namespace != c.namespace {
		return nil, fmt.Errorf("read Transaction %s/%s: namespace %s alone is shown: %w", namespace, name, c.namespace,
			apierrors.NewNotFound(api.Resource.GroupResource(), name))
	}
	u, err := c.dynamic.Resource(api.Resource).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("read Transaction %s/%s: %w", namespace, name, err)
	}
	return typed(u)
}

// Follow implements Reader.
func (c *Cluster) Follow(ctx context.Context) ([]*api.Transaction, watch.Interface, error) {
	found, version, err := c.list(ctx)
	if err != nil {
		return nil, nil, err
	}
	changes, err := c.dynamic.Resource(api.Resource).Namespace(c.namespace).Watch(ctx, metav1.ListOptions{ResourceVersion: version})
	if err != nil {
		return nil, nil, fmt.Errorf("watch Transactions: %w", err)
	}
	return found, newTyping(changes), nil
}

// Leases implements Reader.
func (c *Cluster) Leases(ctx context.Context, namespace string) ([]coordinationv1.Lease, error) {
	list, err := c.kube.CoordinationV1().Leases(namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("list the Leases of namespace %s: %w", namespace, err)
	}
	return leasetable.Expand(list.Items), nil
}

// Events implements Reader.
func (c *Cluster) Events(ctx context.Context, t *api.Transaction) ([]corev1.Event, error) {
	list, err := c.kube.CoreV1().Events(t.Namespace).List(ctx, metav1.ListOptions{
		FieldSelector: fields.OneTermEqualSelector("involvedObject.uid", string(t.UID)).String(),
	})
	if err != nil {
		return nil, fmt.Errorf("list the events of Transaction %s/%s: %w", t.Namespace, t.Name, err)
	}
	return list.Items, nil
}

func typed(u *unstructured.Unstructured) (*api.Transaction, error) {
	t := &api.Transaction{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, t); err != nil {
		return nil, fmt.Errorf("read Transaction %s/%s: %w", u.GetNamespace(), u.GetName(), err)
	}
	return t, nil
}
