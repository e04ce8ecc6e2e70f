package mutate

import (
	"context"
	"encoding/json"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structural "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"janus.io/janus/fieldmerge"
	"janus.io/janus/internal/errclass"
)

// Redefinition is what an earlier item of the Transaction makes of the definition of the
// target's kind.
type Redefinition struct {
	// Item is its name.
	Item string
	// Before is the definition as it was; nil until that is recorded. After is what the item
	// makes of it, which may be no more than its versions.
	Before, After map[string]any
}

// admitNarrowed refuses a change of a target that has a field which an earlier item takes out
// of its kind: the API server drops that at the next write. A deletion writes nothing: its
// before-image has the field, unless it was read after that item.
func (c Change) admitNarrowed(ctx context.Context, s Strategy, before *unstructured.Unstructured, op string) ([]string, error) {
	if before == nil || c.Environment.Redefined == nil || !fieldmerge.Custom(c.Ref.GVK.GroupKind()) {
		return nil, nil
	}
	redefined, err := c.Environment.Redefined(ctx)
	if err != nil {
		return nil, c.wrap(err, "find the definition of")
	}
	_, deletes := s.(deleteStrategy)
	for _, r := range redefined {
		var lost []string
		if !deletes {
			if lost, err = c.dropped(ctx, r, before); err != nil {
				return nil, err
			}
		}
		if lost = append(lost, c.alreadyDropped(r, before)...); len(lost) == 0 {
			continue
		}
		why := "item " + r.Item + " takes " + few(lost) + " out of the definition of its kind"
		if c.Options.AcceptLoss {
			return c.warn(why + ": it is lost, and a rollback may not restore it"), nil
		}
		return nil, c.fail(errclass.Terminal, errclass.Irreversible, op, "it could not be rolled back: %s", why).
			WithHint("keep the field in the definition until the Transaction has committed, or set acceptLoss: true on the change")
	}
	return nil, nil
}

// dropped lists the fields of the target that a definition does not keep, but for those which
// show no more than their default.
func (c Change) dropped(ctx context.Context, r Redefinition, before *unstructured.Unstructured) ([]string, error) {
	kept := before.DeepCopy()
	var dropped bool
	for _, version := range c.writtenBy(ctx, r.After) {
		dropped = len(prune(r.After, version, kept.Object)) > 0 || dropped
	}
	if !dropped {
		return nil, nil
	}
	found, err := c.hidden(ctx, kept, before, Served{Ref: c.Ref, Type: c.Environment.Type})
	return found.fields, err
}

// alreadyDropped lists the fields that the target is not shown with any more, because a
// definition has lost them: they have an owner, and would not if a client had removed them.
func (c Change) alreadyDropped(r Redefinition, before *unstructured.Unstructured) []string {
	if r.Before == nil {
		return nil
	}
	var out []string
	version := c.Ref.GVK.Version
	for _, f := range fieldmerge.Unshown(before, func(v string) bool { return v == c.Ref.GVK.GroupVersion().String() }) {
		if len(prune(r.Before, version, f.Alone())) == 0 && len(prune(r.After, version, f.Alone())) > 0 {
			out = append(out, c.path(f.Path))
		}
	}
	return out
}

// writtenBy are the versions whose schema a write of the target goes through: its own, and the
// stored one where that has the same fields.
func (c Change) writtenBy(ctx context.Context, definition map[string]any) []string {
	out := []string{c.Ref.GVK.Version}
	for _, v := range versionsOf(definition) {
		name, _ := v["name"].(string)
		if v["storage"] == true && name != c.Ref.GVK.Version && c.conversion(ctx) == noConversion {
			out = append(out, name)
		}
	}
	return out
}

func versionsOf(definition map[string]any) (out []map[string]any) {
	versions, _, _ := unstructured.NestedFieldNoCopy(definition, "spec", "versions")
	list, _ := versions.([]any)
	for _, v := range list {
		if version, ok := v.(map[string]any); ok {
			out = append(out, version)
		}
	}
	return out
}

// prune takes out of an object what a version of a definition does not have, and lists it. A
// definition that says nothing of the version, or nothing that can be read, keeps everything.
func prune(definition map[string]any, version string, object map[string]any) []string {
	versions := versionsOf(definition)
	i := slices.IndexFunc(versions, func(v map[string]any) bool { return v["name"] == version })
	preserves, _, _ := unstructured.NestedBool(definition, "spec", "preserveUnknownFields")
	if i < 0 || preserves {
		return nil
	}
	schema, err := schemaOf(versions[i])
	if err != nil {
		return nil
	}
	return pruning.PruneWithOptions(object, schema, true, structural.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})
}

func schemaOf(version map[string]any) (*structural.Structural, error) {
	found, _, err := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(found)
	if err != nil {
		return nil, err
	}
	var props apiextensionsv1.JSONSchemaProps
	if err := json.Unmarshal(text, &props); err != nil {
		return nil, err
	}
	var internal apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(&props, &internal, nil); err != nil {
		return nil, err
	}
	return structural.NewStructural(&internal)
}
