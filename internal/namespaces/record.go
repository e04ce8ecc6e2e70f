package namespaces

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// A record is a ConfigMap with a key for each namespace in which Transactions may have been
// begun. The value is when a replica last entered it, so that each entry is a change: what
// another replica is about to remove stays.
type record struct {
	client corev1client.ConfigMapInterface
	name   string
	now    func() time.Time
}

// read returns the namespaces on record, and the version of that.
func (r record) read(ctx context.Context) (names []string, version string, err error) {
	found, err := r.client.Get(ctx, r.name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return nil, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the namespaces on record: %w", err)
	}
	return slices.Sorted(maps.Keys(found.Data)), found.ResourceVersion, nil
}

// enter puts namespaces on record, and returns all that are. It may be repeated after any
// outcome.
func (r record) enter(ctx context.Context, names []string) ([]string, error) {
	entries := map[string]*string{}
	at := r.now().UTC().Format(time.RFC3339Nano)
	for _, name := range names {
		entries[name] = &at
	}
	found, err := r.patch(ctx, entries, "")
	if apierrors.IsNotFound(err) {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
			Name: r.name, Labels: map[string]string{"app.kubernetes.io/name": "janusd", "app.kubernetes.io/managed-by": "janus"},
		}}
		if _, err = r.client.Create(ctx, made, metav1.CreateOptions{}); err == nil || apierrors.IsAlreadyExists(err) {
			found, err = r.patch(ctx, entries, "")
		}
	}
	if err != nil {
		return nil, fmt.Errorf("put the namespaces on record: %w", err)
	}
	return slices.Sorted(maps.Keys(found.Data)), nil
}

// remove takes a namespace off the record, if that is still of the version at which it was found
// that nothing is to be finished there.
func (r record) remove(ctx context.Context, name, version string) error {
	_, err := r.patch(ctx, map[string]*string{name: nil}, version)
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("take namespace %s off the record: %w", name, err)
	}
	return nil
}

func (r record) patch(ctx context.Context, entries map[string]*string, version string) (*corev1.ConfigMap, error) {
	content := map[string]any{"data": entries}
	if version != "" {
		content["metadata"] = map[string]any{"resourceVersion": version}
	}
	encoded, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return r.client.Patch(ctx, r.name, types.MergePatchType, encoded, metav1.PatchOptions{FieldManager: "janusd"})
}
