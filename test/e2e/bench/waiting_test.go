package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
)

// waitMode says what many Transactions wait for, and with which rights.
type waitMode struct {
	name string
	// polls says that their ServiceAccount may read what they wait for, and not watch it.
	polls bool
	// locks says that they wait for one lock, and not each for an object of its own.
	locks bool
}

// waiting has many Transactions wait, counts what they ask for meanwhile, and measures how long it
// takes until they go on. Most of them still wait when it returns, so nothing is measured after it.
func (s *stage) waiting(ctx context.Context, out io.Writer) error {
	t := table{title: "Transactions that wait", first: "waiting", columns: []string{"for", "requests a minute", "until it goes on", "of nine in ten"}}
	for _, n := range s.waits {
		for _, mode := range []waitMode{
			{name: "an object that may not be watched", polls: true}, {name: "an object that may be watched"}, {name: "one lock", locks: true},
		} {
			r, err := s.waitFor(ctx, out, n, mode)
			if err != nil {
				return fmt.Errorf("%d Transactions that wait for %s: %w", n, mode.name, err)
			}
			t.rows = append(t.rows, r)
		}
	}
	if len(t.rows) > 0 {
		t.write(out)
	}
	return nil
}

func (s *stage) waitFor(ctx context.Context, out io.Writer, n int, mode waitMode) (r row, err error) {
	progress("%d Transactions wait for %s", n, mode.name)
	namespace, err := s.namespace(ctx, 1)
	if err != nil {
		return r, err
	}
	if mode.polls {
		if err := s.forbidWatches(ctx, namespace); err != nil {
			return r, err
		}
	}
	if mode.locks {
		if err := s.begin(ctx, namespace, "holder", fmt.Sprintf(waitsForGate, 0)+patchesOne, "NotReady"); err != nil {
			return r, err
		}
	}
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(atOnceClients)
	for i := range n {
		group.Go(func() error {
			if mode.locks {
				return s.begin(within, namespace, fmt.Sprint("waits-", i), patchesOne, "LockHeld")
			}
			return s.begin(within, namespace, fmt.Sprint("waits-", i), fmt.Sprintf(waitsForGate, i), "NotReady")
		})
	}
	if err := group.Wait(); err != nil {
		return r, err
	}
	if err := sleep(ctx, s.idle); err != nil {
		return r, err
	}
	before, err := s.requestsIn(namespace)
	if err != nil {
		return r, err
	}
	if err := sleep(ctx, 2*s.idle); err != nil {
		return r, err
	}
	after, err := s.requestsIn(namespace)
	if err != nil {
		return r, err
	}
	if _, err := fmt.Fprintf(out, "\nRequests of %d Transactions that wait for %s, in %s: %s.\n", n, mode.name, 2*s.idle, after.since(before)); err != nil {
		return r, err
	}
	perMinute := float64(after.since(before).sum()) * float64(time.Minute) / float64(2*s.idle)
	texts := []string{mode.name, fmt.Sprintf("%.0f", perMinute), "", ""}
	if !mode.locks {
		took, err := s.opened(ctx, namespace, min(n, 50))
		if err != nil {
			return r, err
		}
		slices.Sort(took)
		texts[2], texts[3] = fmt.Sprintf("%d ms", median(took).Milliseconds()), fmt.Sprintf("%d ms", took[len(took)*9/10].Milliseconds())
	}
	return row{name: fmt.Sprint(n), texts: texts}, nil
}

const (
	waitsForGate = "  - {name: gate, type: Await, target: {apiVersion: v1, kind: ConfigMap, name: gate-%d}, readyWhen: {expression: object != null}}\n"
	patchesOne   = "  - {type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: c-0}, content: {data: {version: patched}}}\n"
)

// begin creates a Transaction and waits until it says that it waits.
func (s *stage) begin(ctx context.Context, namespace, name, changes, reason string) error {
	obj := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest(namespace, name, 0, 0, "", changes)), &obj.Object); err != nil {
		return err
	}
	if err := unstructured.SetNestedField(obj.Object, "6h", "spec", "timeout"); err != nil {
		return err
	}
	client := s.client.Dynamic.Resource(api.Resource).Namespace(namespace)
	if _, err := client.Create(ctx, obj, metav1.CreateOptions{}); err != nil {
		return err
	}
	return wait.PollUntilContextTimeout(ctx, 200*time.Millisecond, 10*time.Minute, true, func(ctx context.Context) (bool, error) {
		live, err := client.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return false, err
		}
		txn := &api.Transaction{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, txn); err != nil {
			return false, err
		}
		if txn.Status.Phase.Terminal() {
			return false, fmt.Errorf("the Transaction %s is %s: %v", name, txn.Status.Phase, txn.Status.Conditions)
		}
		now := meta.FindStatusCondition(txn.Status.Conditions, api.ConditionReconciling)
		return now != nil && now.Reason == reason, nil
	})
}

// opened makes what some Transactions wait for, one after the other, and returns how long each takes to
// go on.
func (s *stage) opened(ctx context.Context, namespace string, n int) ([]time.Duration, error) {
	client := s.client.Dynamic.Resource(api.Resource).Namespace(namespace)
	list, err := client.List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return nil, err
	}
	seen, err := client.Watch(ctx, metav1.ListOptions{ResourceVersion: list.GetResourceVersion()})
	if err != nil {
		return nil, err
	}
	defer seen.Stop()
	var took []time.Duration
	for i := range n {
		gate := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("gate-", i)}}
		if _, err := s.client.Kube.CoreV1().ConfigMaps(namespace).Create(ctx, gate, metav1.CreateOptions{}); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := wentOn(ctx, seen, fmt.Sprint("waits-", i)); err != nil {
			return nil, err
		}
		took = append(took, time.Since(began))
	}
	return took, nil
}

// wentOn waits until the watch shows that a Transaction has found its first item ready.
func wentOn(ctx context.Context, seen watch.Interface, name string) error {
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case event, ok := <-seen.ResultChan():
			if !ok || event.Type == watch.Error {
				return errors.New("the watch of Transactions has ended")
			}
			txn := event.Object.(*unstructured.Unstructured)
			items, _, _ := unstructured.NestedSlice(txn.Object, "status", "items")
			if txn.GetName() != name || len(items) == 0 {
				continue
			}
			if item, ok := items[0].(map[string]any); ok && item["readyTime"] != nil {
				return nil
			}
		}
	}
}

// forbidWatches leaves the ServiceAccount of a namespace all rights to ConfigMaps but to watch them.
func (s *stage) forbidWatches(ctx context.Context, namespace string) error {
	rights := s.client.Kube.RbacV1()
	if _, err := rights.Roles(namespace).Create(ctx, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create", "update", "patch", "delete"}}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	if err := rights.RoleBindings(namespace).Delete(ctx, account, metav1.DeleteOptions{}); err != nil {
		return err
	}
	if _, err := rights.RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}},
	}, metav1.CreateOptions{}); err != nil {
		return err
	}
	return s.awaitRights(ctx, namespace)
}
