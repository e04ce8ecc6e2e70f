package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
)

// node is the part of a v1 Node that is written and read here.
type node struct {
	APIVersion string `json:"apiVersion,omitempty"`
	Kind       string `json:"kind,omitempty"`
	Metadata   struct {
		Name        string            `json:"name"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	} `json:"metadata"`
	Spec struct {
		Taints []struct {
			Key string `json:"key"`
		} `json:"taints,omitempty"`
	} `json:"spec"`
	Status struct {
		Capacity    map[string]string `json:"capacity,omitempty"`
		Allocatable map[string]string `json:"allocatable,omitempty"`
		Conditions  []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
		} `json:"conditions,omitempty"`
	} `json:"status"`
}

// newNode describes the i-th Node, a machine large enough that tests do not
// run out of room by accident, in one of three zones.
func newNode(i int) node {
	var n node
	n.APIVersion, n.Kind = "v1", "Node"
	n.Metadata.Name = fmt.Sprintf("node-%d", i)
	n.Metadata.Labels = map[string]string{
		"kubernetes.io/arch":          "amd64",
		"kubernetes.io/hostname":      n.Metadata.Name,
		"kubernetes.io/os":            "linux",
		"topology.kubernetes.io/zone": fmt.Sprintf("zone-%d", i%3),
	}
	n.Metadata.Annotations = map[string]string{"kwok.x-k8s.io/node": "fake"}
	n.Status.Capacity = map[string]string{
		"cpu": "32", "memory": "256Gi", "ephemeral-storage": "1Ti", "pods": "110",
	}
	n.Status.Allocatable = n.Status.Capacity
	return n
}

// createNodes creates count Nodes. One that exists already is left alone,
// because a data directory may be used again.
func (c apiClient) createNodes(ctx context.Context, server string, count int) error {
	for i := range count {
		n := newNode(i)
		err := c.post(ctx, server+"/api/v1/nodes", n)
		var status *statusError
		if errors.As(err, &status) && status.code == http.StatusConflict {
			continue
		}
		if err != nil {
			return fmt.Errorf("create Node %s: %w", n.Metadata.Name, err)
		}
	}
	return nil
}

// nodesReady wants count Nodes that are Ready and that Pods may be put on.
func (c apiClient) nodesReady(server string, count int) probe {
	return func(ctx context.Context) error {
		body, err := exchange(ctx, c.http, http.MethodGet, server+"/api/v1/nodes", nil)
		if err != nil {
			return err
		}
		var list struct {
			Items []node `json:"items"`
		}
		if err := json.Unmarshal(body, &list); err != nil {
			return fmt.Errorf("decode the list of Nodes: %w", err)
		}
		ready := 0
		for _, n := range list.Items {
			if n.ready() {
				ready++
			}
		}
		if ready < count {
			return fmt.Errorf("%d of %d Nodes are ready", ready, count)
		}
		return nil
	}
}

func (n node) ready() bool {
	for _, c := range n.Status.Conditions {
		if c.Type == "Ready" {
			return c.Status == "True" && len(n.Spec.Taints) == 0
		}
	}
	return false
}
