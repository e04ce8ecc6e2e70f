package lockmgr

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// HolderOf says which identity is on the lock of a target, empty if none is, without
// taking or remembering anything. One whose time is over still counts: what it was about
// to do may be half done.
func (m *Manager) HolderOf(ctx context.Context, key Key) (string, error) {
	for _, place := range m.places(key) {
		lease, err := m.get(ctx, place)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return "", err
		case holderOf(lease) != "":
			return holderOf(lease), nil
		}
	}
	return "", nil
}
