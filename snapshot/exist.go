package snapshot

import (
	"context"

	"janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// SavesOfPlain is how often before-images may have been saved of a Transaction that saves them
// together: once, and once more by a process that was late.
const SavesOfPlain = 2

// Exist reports whether there is a ConfigMap with before-images of a Transaction that saves them
// together and in no Secrets, or an object with the name of one. ref is what its status names. It looks
// where Sweep and SweepUnlisted do, and where those are that ref names, with one request for each.
func (s *Store) Exist(ctx context.Context, o Owner, ref *v1alpha1.RollbackRef) (bool, error) {
	known := listed(o.Name, ref)
	numbers := max(last(known, configMaps)+1, SavesOfPlain)
	for n := 1; n <= numbers; n++ {
		name := objectName(o.Name, n)
		_, err := s.objects.metadata(ctx, o.Namespace, configMaps, name)
		if errclass.Is(err, errclass.NotFound) && len(known) == 0 {
			_, err = s.objects.metadata(ctx, o.Namespace, configMaps, name) // Nobody looks for it again.
		}
		switch {
		case errclass.Is(err, errclass.NotFound):
		case err != nil:
			return false, wrap(err, "get", o.Namespace, configMaps, name, false)
		default:
			return true, nil
		}
	}
	return false, nil
}
