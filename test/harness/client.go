package harness

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// Client is the test's own access to the cluster, as its administrator.
type Client struct {
	Host    string
	Config  *rest.Config
	Dynamic dynamic.Interface
	Kube    kubernetes.Interface
	mapper  *restmapper.DeferredDiscoveryRESTMapper
}

// NewClient makes a Client.
func NewClient(config *rest.Config) (*Client, error) {
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	mapper := restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(kube.Discovery()))
	return &Client{Host: config.Host, Config: config, Dynamic: dyn, Kube: kube, mapper: mapper}, nil
}

// Manager is the field manager of the test's own writes.
const Manager = "tester"

// ApplyYAML applies every object of a stream of YAML documents; a namespaced one
// without namespace goes into the given one.
func (c *Client) ApplyYAML(ctx context.Context, namespace, stream string) error {
	objects, err := Decode(stream)
	if err != nil {
		return err
	}
	for _, obj := range objects {
		client, err := c.For(obj.GroupVersionKind(), orDefault(obj.GetNamespace(), namespace))
		if err != nil {
			return err
		}
		if _, err := client.Apply(ctx, obj.GetName(), obj, metav1.ApplyOptions{FieldManager: Manager, Force: true}); err != nil {
			return fmt.Errorf("apply %s %s: %w", obj.GetKind(), obj.GetName(), err)
		}
	}
	return nil
}

// Decode reads a stream of YAML documents.
func Decode(stream string) ([]*unstructured.Unstructured, error) {
	decoder := yaml.NewYAMLOrJSONDecoder(strings.NewReader(stream), 4096)
	var out []*unstructured.Unstructured
	for {
		obj := &unstructured.Unstructured{}
		err := decoder.Decode(&obj.Object)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("decode: %w", err)
		}
		if len(obj.Object) > 0 {
			out = append(out, obj)
		}
	}
}

func orDefault(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

// For returns the interface to a kind in a namespace; the namespace is left out for
// a cluster-scoped kind.
func (c *Client) For(gvk schema.GroupVersionKind, namespace string) (dynamic.ResourceInterface, error) {
	mapping, err := c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if meta.IsNoMatchError(err) {
		c.mapper.Reset()
		mapping, err = c.mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	}
	if err != nil {
		return nil, err
	}
	resource := c.Dynamic.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameNamespace {
		return resource.Namespace(namespace), nil
	}
	return resource, nil
}

// awaitServed waits until a kind is served.
func (c *Client) awaitServed(ctx context.Context, gvk schema.GroupVersionKind) error {
	return Poll(ctx, func(ctx context.Context) (bool, error) {
		client, err := c.For(gvk, "default")
		if meta.IsNoMatchError(err) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		_, err = client.List(ctx, metav1.ListOptions{Limit: 1})
		if apierrors.IsNotFound(err) {
			return false, nil
		}
		return err == nil, err
	})
}

// patience is how long a test waits for what must happen.
const patience = 3 * time.Minute

// Poll looks until done or patience is over.
func Poll(ctx context.Context, done func(ctx context.Context) (bool, error)) error {
	return wait.PollUntilContextTimeout(ctx, 20*time.Millisecond, patience, true, done)
}
