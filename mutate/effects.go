package mutate

import (
	"context"
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
)

// Effects is what a change would do to an object, to be compared and not to be shown: its values
// are whole.
type Effects struct {
	// Fields are those that get another value or go, with both values; of a sensitive object
	// they have none.
	Fields map[string]string
	// Chosen is set if the API server, or what it asks, gives some of them a value that the
	// content does not have. It may choose another one the next time.
	Chosen bool
}

// EffectsOf tells the effects of a change by what a dry run made of the object. Either object may
// be nil. What nobody but the API server and controllers write is no effect.
func (c Change) EffectsOf(ctx context.Context, before, after *unstructured.Unstructured) (Effects, error) {
	if before == nil {
		after = unmarked(after)
	}
	images, err := c.images(ctx, before, after, nil)
	if err != nil {
		return Effects{}, err
	}
	out := Effects{Fields: map[string]string{}}
	for _, d := range images.Differences() {
		given := d.SetBy(c.Content)
		if d.Made && !given {
			continue
		}
		out.Chosen = out.Chosen || d.After != nil && !given
		path, values := c.path(d.Path), ""
		if !c.Sensitive {
			if values, err = wholeValues(d); err != nil {
				return Effects{}, fmt.Errorf("encode %s of %s: %w", d.Path, c.Ref, err)
			}
		}
		out.Fields[path] += values
	}
	return out, nil
}

// wholeValues writes both values of a field, so that those of different fields differ.
func wholeValues(d fieldmerge.Difference) (string, error) {
	type value struct {
		There, Null bool
		Value       any
	}
	var values []value
	for _, v := range []any{d.Before, d.After} {
		one := value{There: v != nil, Value: v}
		if v == (fieldmerge.Null{}) {
			one.Null, one.Value = true, nil
		}
		values = append(values, one)
	}
	text, err := json.Marshal(values)
	return string(text), err
}
