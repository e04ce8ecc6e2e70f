package wiring

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"janus.io/janus/mutate"
)

// fingerprint is the digest of the object that the change of an item meets and of all that it
// would do to it. Two looks at an item have the same one if who approves one of them would see
// the same in the other. So the resourceVersion does not count, which a controller changes all
// the time: the values of the fields do that the change gives others, or removes. Of a
// confidential object it does in their place, so that nothing can be told from the digest.
func (s session) fingerprint(ctx context.Context, i int, found seen) (string, error) {
	effects, err := s.effects(ctx, i, found)
	if err != nil {
		return "", err
	}
	type owner struct {
		Manager, Subresource string
		Paths                []string
	}
	whole := struct {
		UID             types.UID
		ResourceVersion string
		Fields          map[string]string
		Taken           []owner
		Warnings        []string
	}{Fields: effects.Fields, Warnings: found.forecast.Warnings}
	if found.before != nil {
		whole.UID = found.before.GetUID()
		if found.change.Sensitive {
			whole.ResourceVersion = found.before.GetResourceVersion()
		}
	}
	for _, taken := range found.forecast.Taken {
		whole.Taken = append(whole.Taken, owner{taken.Manager, taken.Subresource, slices.Sorted(slices.Values(taken.Paths))})
	}
	text, err := json.Marshal(whole)
	if err != nil {
		return "", fmt.Errorf("encode what the change would do to %s: %w", found.change.Ref, err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// effects are those of the change of an item. Where the API server, or a webhook, gives values
// that the content does not have, the change is tried once more, and what differs is left out:
// it is chosen again each time, as the suffix of a name is.
func (s session) effects(ctx context.Context, i int, found seen) (mutate.Effects, error) {
	first, err := found.change.EffectsOf(ctx, found.before, found.forecast.After)
	if err != nil || !first.Chosen {
		return first, err
	}
	again := found
	if err := s.foresee(ctx, i, &again); err != nil {
		return mutate.Effects{}, err
	}
	second, err := again.change.EffectsOf(ctx, again.before, again.forecast.After)
	if err != nil {
		return mutate.Effects{}, err
	}
	maps.DeleteFunc(first.Fields, func(path, values string) bool {
		same, there := second.Fields[path]
		return !there || same != values
	})
	return first, nil
}
