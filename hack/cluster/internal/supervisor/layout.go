package supervisor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// layout names the files in the data directory.
type layout struct {
	dir string
	// temporary is set if the directory goes away with the cluster.
	temporary bool
}

// newLayout creates the data directory and the directories in it.
func newLayout(o Options) (layout, error) {
	l := layout{dir: o.Dir, temporary: o.RemoveDir || o.Dir == ""}
	if l.dir == "" {
		dir, err := os.MkdirTemp("", "janus-cluster-")
		if err != nil {
			return layout{}, fmt.Errorf("create the data directory: %w", err)
		}
		l.dir = dir
	}
	for _, dir := range []string{l.pki(), o.LogDir} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return layout{}, errors.Join(fmt.Errorf("create %s: %w", dir, err), l.remove())
		}
	}
	return l, nil
}

// remove removes a data directory that goes away with the cluster.
func (l layout) remove() error {
	if !l.temporary {
		return nil
	}
	if err := os.RemoveAll(l.dir); err != nil {
		return fmt.Errorf("remove the data directory: %w", err)
	}
	return nil
}

func (l layout) path(name string) string { return filepath.Join(l.dir, name) }

func (l layout) pki() string         { return l.path("pki") }
func (l layout) signingKey() string  { return l.path("pki/service-account.key") }
func (l layout) etcdSocket() string  { return l.path("etcd.sock") }
func (l layout) peerSocket() string  { return l.path("peer.sock") }
func (l layout) auditPolicy() string { return l.path("audit-policy.yaml") }
func (l layout) stages() string      { return l.path("kwok-stages.yaml") }
func (l layout) pids() string        { return l.path("pids.json") }

func (l layout) kubeconfig(user string) string { return l.path(user + ".kubeconfig") }
