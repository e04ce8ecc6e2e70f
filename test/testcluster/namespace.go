package testcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// namespaceTimeout bounds the creation of a namespace on a busy machine.
const namespaceTimeout = 30 * time.Second

// Namespace creates a namespace in the cluster of the package, see
// Cluster.Namespace.
func Namespace(t testing.TB) string {
	t.Helper()
	return Shared(t).Namespace(t)
}

// Namespace creates a namespace with a name of its own, derived from the name
// of the test, and returns the name. With a controller manager it waits until
// the namespace has its ServiceAccount, so that Pods can be created. The
// namespace is deleted when the test ends; nothing waits for it to be gone.
func (c *Cluster) Namespace(t testing.TB) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), namespaceTimeout)
	defer cancel()
	name, err := c.createNamespace(ctx, namePrefix(t.Name()))
	if err != nil {
		t.Fatalf("create a namespace: %v", err)
	}
	c.mu.Lock()
	c.namespaces = append(c.namespaces, name)
	c.mu.Unlock()
	t.Cleanup(func() {
		// The context of the test has ended by now, and the test may have
		// deleted the namespace or killed the API server.
		ctx, cancel := context.WithTimeout(context.Background(), namespaceTimeout)
		defer cancel()
		if err := c.call(ctx, http.MethodDelete, "/api/v1/namespaces/"+name, nil, nil); err != nil {
			t.Logf("delete namespace %s: %v", name, err)
		}
	})
	if c.options.ControllerManager {
		account := "/api/v1/namespaces/" + name + "/serviceaccounts/default"
		if err := c.awaitObject(ctx, account); err != nil {
			t.Fatalf("wait for the ServiceAccount of namespace %s: %v", name, err)
		}
	}
	return name
}

// createNamespace lets the API server complete the name.
func (c *Cluster) createNamespace(ctx context.Context, prefix string) (string, error) {
	type metadata struct {
		Name         string `json:"name,omitempty"`
		GenerateName string `json:"generateName,omitempty"`
	}
	type namespace struct {
		APIVersion string   `json:"apiVersion"`
		Kind       string   `json:"kind"`
		Metadata   metadata `json:"metadata"`
	}
	body, err := json.Marshal(namespace{"v1", "Namespace", metadata{GenerateName: prefix}})
	if err != nil {
		return "", fmt.Errorf("encode the namespace: %w", err)
	}
	var created namespace
	if err := c.call(ctx, http.MethodPost, "/api/v1/namespaces", body, &created); err != nil {
		return "", err
	}
	return created.Metadata.Name, nil
}

// awaitObject asks for the path until it exists. A watch would need one request
// less, but the object is there after one or two anyway.
func (c *Cluster) awaitObject(ctx context.Context, path string) error {
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := c.call(ctx, http.MethodGet, path, nil, nil)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", ctx.Err(), err)
		case <-ticker.C:
		}
	}
}

// namePrefix turns the name of a test into the start of a namespace's name.
func namePrefix(test string) string {
	const longest = 40
	var b strings.Builder
	for _, r := range strings.ToLower(test) {
		if b.Len() == longest {
			break
		}
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			r = '-'
		}
		b.WriteRune(r)
	}
	return strings.Trim(b.String(), "-") + "-"
}
