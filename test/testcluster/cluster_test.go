package testcluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"
)

type configMap struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Metadata   struct {
		Name            string `json:"name"`
		UID             string `json:"uid,omitempty"`
		ResourceVersion string `json:"resourceVersion,omitempty"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

// createConfigMap creates a ConfigMap and returns its path.
func createConfigMap(t *testing.T, c *Cluster, namespace, name string) string {
	t.Helper()
	object := configMap{APIVersion: "v1", Kind: "ConfigMap", Data: map[string]string{"key": "value"}}
	object.Metadata.Name = name
	body, err := json.Marshal(object)
	if err != nil {
		t.Fatal(err)
	}
	collection := "/api/v1/namespaces/" + namespace + "/configmaps"
	if err := c.call(t.Context(), http.MethodPost, collection, body, nil); err != nil {
		t.Fatal(err)
	}
	return collection + "/" + name
}

// notFound says whether the API server answered that there is no such object.
func notFound(err error) bool {
	var status *statusError
	return errors.As(err, &status) && status.code == http.StatusNotFound
}

func TestSharedClusterIsReady(t *testing.T) {
	if err := Shared(t).call(t.Context(), http.MethodGet, "/readyz", nil, nil); err != nil {
		t.Fatal(err)
	}
}

func TestConfigIsACopyWithoutRateLimit(t *testing.T) {
	first := Shared(t).Config()
	if first.QPS != -1 {
		t.Errorf("QPS is %v, want -1", first.QPS)
	}
	first.Host = "changed"
	if second := Shared(t).Config(); second.Host == first.Host {
		t.Error("changing one copy changed the other")
	}
}

func TestConfigMapKeepsWhatWasWritten(t *testing.T) {
	c := Shared(t)
	path := createConfigMap(t, c, Namespace(t), "sample")
	var got configMap
	if err := c.call(t.Context(), http.MethodGet, path, nil, &got); err != nil {
		t.Fatal(err)
	}
	if got.Data["key"] != "value" || got.Metadata.UID == "" || got.Metadata.ResourceVersion == "" {
		t.Errorf("got %+v", got)
	}
}

func TestNamespacesDifferAndFinishTerminating(t *testing.T) {
	c := Shared(t)
	first := Namespace(t)
	var second string
	t.Run("another", func(t *testing.T) { second = Namespace(t) })
	if first == second {
		t.Fatalf("both are %s", first)
	}
	within(t, 30*time.Second, func(ctx context.Context) error {
		err := c.call(ctx, http.MethodGet, "/api/v1/namespaces/"+second, nil, nil)
		if err == nil {
			return fmt.Errorf("namespace %s is still there", second)
		}
		if notFound(err) {
			return nil
		}
		return err
	})
}

func TestDependentsAreGarbageCollected(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	owner := createConfigMap(t, c, namespace, "owner")
	var object configMap
	if err := c.call(t.Context(), http.MethodGet, owner, nil, &object); err != nil {
		t.Fatal(err)
	}
	dependent := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"dependent","ownerReferences":
		[{"apiVersion":"v1","kind":"ConfigMap","name":"owner","uid":%q}]}}`, object.Metadata.UID)
	collection := "/api/v1/namespaces/" + namespace + "/configmaps"
	if err := c.call(t.Context(), http.MethodPost, collection, []byte(dependent), nil); err != nil {
		t.Fatal(err)
	}
	if err := c.call(t.Context(), http.MethodDelete, owner, nil, nil); err != nil {
		t.Fatal(err)
	}
	within(t, 30*time.Second, func(ctx context.Context) error {
		err := c.call(ctx, http.MethodGet, collection+"/dependent", nil, nil)
		if notFound(err) {
			return nil
		}
		return fmt.Errorf("the dependent is still there: %w", err)
	})
}

func TestServiceAccountTokensAreIssuedAndAccepted(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	var answer struct {
		Status struct{ Token string }
	}
	path := "/api/v1/namespaces/" + namespace + "/serviceaccounts/default/token"
	request := []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{}}`)
	if err := c.call(t.Context(), http.MethodPost, path, request, &answer); err != nil {
		t.Fatal(err)
	}
	review, err := json.Marshal(map[string]any{
		"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview",
		"spec": map[string]any{"token": answer.Status.Token},
	})
	if err != nil {
		t.Fatal(err)
	}
	var reviewed struct {
		Status struct {
			Authenticated bool
			User          struct{ Username string }
		}
	}
	if err := c.call(t.Context(), http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews", review, &reviewed); err != nil {
		t.Fatal(err)
	}
	if want := "system:serviceaccount:" + namespace + ":default"; reviewed.Status.User.Username != want {
		t.Errorf("the token belongs to %q, want %q", reviewed.Status.User.Username, want)
	}
}

func TestTwoClustersRunSideBySide(t *testing.T) {
	first := Shared(t)
	second := start(t, Options{})
	if first.Config().Host == second.Config().Host {
		t.Fatalf("both serve %s", first.Config().Host)
	}
	path := createConfigMap(t, second, "default", "only-in-the-second")
	if err := first.call(t.Context(), http.MethodGet, path, nil, nil); !notFound(err) {
		t.Errorf("the first cluster answers %v, want not found", err)
	}
	if err := second.Stop(); err != nil {
		t.Error(err)
	}
	if err := first.call(t.Context(), http.MethodGet, "/readyz", nil, nil); err != nil {
		t.Errorf("the first cluster after the second has stopped: %v", err)
	}
}

const deployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web"},"spec":{"replicas":3,
	"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},
	"spec":{"containers":[{"name":"web","image":"example.com/web:1"}]}}}}`

func TestDeploymentBecomesAvailableOnSimulatedNodes(t *testing.T) {
	c := start(t, Options{Nodes: 2})
	namespace := c.Namespace(t)
	collection := "/apis/apps/v1/namespaces/" + namespace + "/deployments"
	if err := c.call(t.Context(), http.MethodPost, collection, []byte(deployment), nil); err != nil {
		t.Fatal(err)
	}
	within(t, time.Minute, func(ctx context.Context) error {
		var got struct {
			Status struct{ AvailableReplicas int }
		}
		if err := c.call(ctx, http.MethodGet, collection+"/web", nil, &got); err != nil {
			return err
		}
		if got.Status.AvailableReplicas != 3 {
			return fmt.Errorf("%d of 3 replicas are available", got.Status.AvailableReplicas)
		}
		return nil
	})
}
