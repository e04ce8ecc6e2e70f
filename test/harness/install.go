package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	told "janus.io/janus/internal/settings"
)

var installOnce sync.Map // *testcluster.Cluster by kubeconfig → *sync.Once

// install is Install, once for a cluster.
func install(t testing.TB, c *Client) {
	t.Helper()
	once, _ := installOnce.LoadOrStore(c.Host, &sync.Once{})
	once.(*sync.Once).Do(func() { require.NoError(t, c.Install(context.Background())) })
}

// Install applies the CRD, and makes Janus' namespace and its ServiceAccount with the
// rights that are shipped. It returns when Transactions are served and the rights count.
func (c *Client) Install(ctx context.Context) error {
	crd, err := os.ReadFile(filepath.Join(Root(), "deploy", "crd", "backup.janus.io_transactions.yaml"))
	if err != nil {
		return err
	}
	if err := c.ApplyYAML(ctx, "", string(crd)); err != nil {
		return err
	}
	if err := c.ApplyYAML(ctx, "", "{apiVersion: v1, kind: Namespace, metadata: {name: "+SystemNamespace+"}}"); err != nil {
		return err
	}
	if err := c.installRights(ctx); err != nil {
		return err
	}
	if err := c.tellSettings(ctx); err != nil {
		return err
	}
	return c.awaitServed(ctx, api.Kind)
}

// tellSettings tells what janusd tells when it starts: no kind is sensitive but Secret. It does so under
// the name of janusd, which is the only user that a policy lets write it.
func (c *Client) tellSettings(ctx context.Context) error {
	data, err := json.Marshal(told.Settings{}.Data())
	if err != nil {
		return err
	}
	config := rest.CopyConfig(c.Config)
	config.Impersonate = rest.ImpersonationConfig{UserName: Identity, Groups: []string{"system:masters"}}
	as, err := NewClient(config)
	if err != nil {
		return err
	}
	return as.ApplyYAML(ctx, "", fmt.Sprintf("{apiVersion: v1, kind: ConfigMap, metadata: {name: %s, namespace: %s}, data: %s}", told.Name, SystemNamespace, data))
}
