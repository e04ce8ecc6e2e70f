package kinds

import (
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"janus.io/janus/internal/target"
)

// door is a step that the API server lets anyone take, and nobody roll back.
type door struct {
	kind schema.GroupKind
	// step is what is done, for those who read the table.
	step string
	// taken says why the step from before to after is for good; empty if it is not taken.
	taken func(before, after map[string]any) string
}

// doors is the table of them, by kind and field. Each row is held against a real API server
// by a test, and so is what looks like one and is none.
var doors = []door{
	{target.SecretKind, "immutable: true", sealed},
	{schema.GroupKind{Kind: "ConfigMap"}, "immutable: true", sealed},
	{Claim, "spec.resources.requests.storage grows", grown},
	{Claim, "spec.volumeName is set", once("spec", "volumeName")},
	{Claim, "spec.storageClassName is set", once("spec", "storageClassName")},
	// It can be unset until the driver has applied it, which may be at any moment.
	{Claim, "spec.volumeAttributesClassName is set", once("spec", "volumeAttributesClassName")},
	{Volume, "spec.nodeAffinity is set", once("spec", "nodeAffinity")},
	{Volume, "spec.volumeAttributesClassName is set", once("spec", "volumeAttributesClassName")},
	{Volume, "spec.csi.controllerExpandSecretRef is set", once("spec", "csi", "controllerExpandSecretRef")},
	{Pod, "spec.tolerations are added", tolerated},
	{Pod, "spec.schedulingGates are removed", removed("scheduling gate", "spec", "schedulingGates")},
	{Pod, "spec.activeDeadlineSeconds is set or lowered", sooner},
	{Pod, "spec.nodeSelector of a gated Pod gets more", narrowed("spec", "nodeSelector")},
	{Pod, "spec.affinity of a gated Pod gets more", narrowed("spec", "affinity")},
	{schema.GroupKind{Kind: "Node"}, "spec.podCIDR is set", once("spec", "podCIDR")},
	{schema.GroupKind{Kind: "Node"}, "spec.providerID is set", once("spec", "providerID")},
	{schema.GroupKind{Group: "networking.k8s.io", Kind: "ServiceCIDR"}, "spec.cidrs get a second one", added("range", "spec", "cidrs")},
	{schema.GroupKind{Group: "batch", Kind: "Job"}, "spec.template changes while spec.suspend becomes false", begun},
	{target.CRDKind, "another version becomes the stored one", stored},
}

// OneWay says what about the step from before to after is for good.
func OneWay(kind schema.GroupKind, before, after *unstructured.Unstructured) string {
	for _, d := range doors {
		if d.kind != kind {
			continue
		}
		if why := d.taken(before.Object, after.Object); why != "" {
			return why
		}
	}
	return ""
}

// field returns a value in an object; nil if there is none, or an empty one.
func field(object map[string]any, path ...string) any {
	value, _, err := unstructured.NestedFieldNoCopy(object, path...)
	if err != nil || value == "" {
		return nil
	}
	return value
}

// once is a field that can be set, and not be unset again.
func once(path ...string) func(before, after map[string]any) string {
	return func(before, after map[string]any) string {
		if field(before, path...) == nil && field(after, path...) != nil {
			return pathOf(path) + " can be set once, and not be unset"
		}
		return ""
	}
}

func pathOf(path []string) string {
	out := ""
	for _, name := range path {
		out += "." + name
	}
	return out
}

// added is a list that can get longer, and not shorter.
func added(what string, path ...string) func(before, after map[string]any) string {
	return func(before, after map[string]any) string {
		if len(Beyond(after, before, path)) > 0 {
			return fmt.Sprintf("a %s can be added to %s, and not be removed", what, pathOf(path))
		}
		return ""
	}
}

// removed is a list that can get shorter, and not longer.
func removed(what string, path ...string) func(before, after map[string]any) string {
	return func(before, after map[string]any) string {
		if len(Beyond(before, after, path)) > 0 {
			return fmt.Sprintf("a %s can be removed from %s, and not be put back", what, pathOf(path))
		}
		return ""
	}
}

// Beyond lists what one list has and the other has not.
func Beyond(one, other map[string]any, path []string) []any {
	has, _ := field(one, path...).([]any)
	lacks, _ := field(other, path...).([]any)
	var out []any
	for _, item := range has {
		if !slices.ContainsFunc(lacks, func(v any) bool { return reflect.DeepEqual(v, item) }) {
			out = append(out, item)
		}
	}
	return out
}

// narrowed is a field that can say more, and not less.
func narrowed(path ...string) func(before, after map[string]any) string {
	return func(before, after map[string]any) string {
		if !reflect.DeepEqual(field(before, path...), field(after, path...)) {
			return pathOf(path) + " of a Pod can get narrower, and not wider"
		}
		return ""
	}
}

// tolerated: of a toleration that is there, only the seconds can change.
func tolerated(before, after map[string]any) string {
	return added("toleration", "spec", "tolerations")(timeless(before), timeless(after))
}

// timeless is a Pod's tolerations without their seconds.
func timeless(pod map[string]any) map[string]any {
	list, _ := field(pod, "spec", "tolerations").([]any)
	out := make([]any, len(list))
	for i, item := range list {
		fields, _ := item.(map[string]any)
		fields = maps.Clone(fields)
		delete(fields, "tolerationSeconds")
		out[i] = fields
	}
	return map[string]any{"spec": map[string]any{"tolerations": out}}
}

func sealed(before, after map[string]any) string {
	if field(after, "immutable") == true && field(before, "immutable") != true {
		return "what is immutable stays so"
	}
	return ""
}

func sooner(before, after map[string]any) string {
	was, had := field(before, "spec", "activeDeadlineSeconds").(int64)
	is, has := field(after, "spec", "activeDeadlineSeconds").(int64)
	if has && (!had || is < was) {
		return ".spec.activeDeadlineSeconds of a Pod can be lowered, and not be raised or unset"
	}
	return ""
}
