package testcluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/tools/clientcmd"
)

// OfferVariable names the directory of a cluster that runs already and that the packages of
// one run of the tests share. A package whose Options it meets uses it; one that asks for
// more starts its own.
const OfferVariable = "JANUS_TEST_CLUSTER"

// offerFile is what the directory of an offered cluster says about it.
const offerFile = "offer.json"

// offer describes a cluster that is offered.
type offer struct {
	Kubeconfig        string `json:"kubeconfig"`
	ControllerManager bool   `json:"controllerManager"`
	Nodes             int    `json:"nodes"`
	Audit             bool   `json:"audit"`
	// CRDs are the digests of the definitions that were installed before the
	// controllers started, by file name.
	CRDs map[string]string `json:"crds"`
}

// Offer makes the cluster one that tests in other processes find by OfferVariable. They
// must not outlive it. The answer is the value of the variable.
func (c *Cluster) Offer() (string, error) {
	crds, err := digests(c.options.CRDs)
	if err != nil {
		return "", fmt.Errorf("offer the cluster: %w", err)
	}
	content, err := json.Marshal(offer{
		Kubeconfig: c.Kubeconfig, ControllerManager: c.options.ControllerManager, Nodes: c.options.Nodes, Audit: c.options.Audit, CRDs: crds,
	})
	if err != nil {
		return "", fmt.Errorf("offer the cluster: %w", err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, offerFile), content, 0o600); err != nil {
		return "", fmt.Errorf("offer the cluster: %w", err)
	}
	return c.dir, nil
}

// accept returns the offered cluster, or nil if none is offered or the options ask for
// another one. An offer that cannot be read is an error: the tests would start a cluster for
// each package instead, and nobody would notice.
func accept(options Options) (*Cluster, error) {
	dir := os.Getenv(OfferVariable)
	if dir == "" {
		return nil, nil
	}
	content, err := os.ReadFile(filepath.Join(dir, offerFile)) //nolint:gosec // the directory is the developer's to name
	if err != nil {
		return nil, fmt.Errorf("read the offer of %s=%s: %w", OfferVariable, dir, err)
	}
	var o offer
	if err := json.Unmarshal(content, &o); err != nil {
		return nil, fmt.Errorf("read the offer of %s=%s: %w", OfferVariable, dir, err)
	}
	if met, err := o.meets(options); !met || err != nil {
		return nil, err
	}
	c := &Cluster{options: options, dir: dir}
	if c.auditFrom, err = size(c.auditLog()); err != nil {
		return nil, fmt.Errorf("use the offered cluster: %w", err)
	}
	if err := c.use(o.Kubeconfig); err != nil {
		return nil, fmt.Errorf("use the offered cluster: %w", err)
	}
	return c, nil
}

// meets reports whether the offered cluster has all that the options ask for. A component
// that is killed would be missed by every package, so RestartKilled is never met.
func (o offer) meets(options Options) (bool, error) {
	crds, err := digests(options.CRDs)
	if err != nil {
		return false, err
	}
	for name, digest := range crds {
		if o.CRDs[name] != digest {
			return false, nil
		}
	}
	return !options.RestartKilled && !options.Alone && options.FeatureGates == "" &&
		(o.ControllerManager || !options.ControllerManager) &&
		(o.Audit || !options.Audit) && o.Nodes >= options.Nodes, nil
}

// digests returns the digest of each definition in a directory, by file name.
func digests(dir string) (map[string]string, error) {
	if dir == "" {
		return nil, nil
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("read a definition: %w", err)
		}
		sum := sha256.Sum256(content)
		out[filepath.Base(file)] = hex.EncodeToString(sum[:])
	}
	return out, nil
}

// use reads the credentials for the cluster.
func (c *Cluster) use(kubeconfig string) error {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return fmt.Errorf("load %s: %w", kubeconfig, err)
	}
	// Tests are not to wait for a client's own rate limiter.
	config.QPS = -1
	c.Kubeconfig, c.config = kubeconfig, config
	return nil
}

// errWithdrawn is why a test fails whose cluster is not offered any more.
var errWithdrawn = errors.New("the offered cluster has ended")

// offered reports whether the cluster is another process's.
func (c *Cluster) offered() bool { return c.process == nil }

// size is that of a file, 0 if there is none.
func size(path string) (int64, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
