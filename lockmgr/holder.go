package lockmgr

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"janus.io/janus/internal/sharedlease"
)

// HoldersOf says which identities are on the lock of a target, none if nobody has it, without
// taking or remembering anything. One whose time is over still counts: what it was about
// to do may be half done.
func (m *Manager) HoldersOf(ctx context.Context, key Key) ([]string, error) {
	for _, place := range m.places(key) {
		lease, err := m.get(ctx, place)
		switch {
		case apierrors.IsNotFound(err):
		case err != nil:
			return nil, err
		case len(sharedlease.Holders(lease)) > 0:
			return sharedlease.Holders(lease), nil
		}
	}
	return nil, nil
}
