package snapshot

import (
	"reflect"

	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// Drift lists the fields in which live differs from its before-image, with who
// owns them now. The object's resourceVersion is not enough to tell: the status
// that a controller writes changes it too. What controllers are known to write
// does not count.
func (i Images) Drift() []FieldConflict {
	types, whole := root(i.Type)
	d := drifter{types: types, Images: i}
	d.value(whole, i.content(i.Before), i.content(i.Live))
	return d.found
}

type drifter struct {
	Images
	types typing
	found []FieldConflict
}

func (d *drifter) value(n node, before, live any) {
	if reflect.DeepEqual(before, live) || d.isControllers(n.path) {
		return
	}
	if parts, ok := d.types.split(n, before, live); ok && !empty(before, live) {
		for _, p := range parts {
			d.value(p.node, p.values[0], p.values[1])
		}
		if isList(live) && reordered(parts, 0, 1) {
			d.add(n, before, live)
		}
		return
	}
	d.add(n, before, live)
}

func (d *drifter) add(n node, before, live any) {
	d.found = append(d.found, FieldConflict{
		Path: n.path.String(), Managers: ownersBelow(d.Live, n.path, nobodys), Now: orNil(live), Before: orNil(before), path: n.path.Copy(),
	})
}

func nobodys(string) bool { return false }

// ByControllers reports whether nothing but the control plane can have made a
// difference: it owns the field.
func (c FieldConflict) ByControllers() bool {
	for _, manager := range c.Managers {
		if !ControlPlane(manager) {
			return false
		}
	}
	return len(c.Managers) > 0
}

// SetBy reports whether content, as a Patch has it, sets the field or something
// above or below it.
func (c FieldConflict) SetBy(content map[string]any) bool {
	var at any = content
	for _, element := range c.path {
		next, ok := elementOf(at, element)
		if !ok {
			return !isContainer(at)
		}
		at = next
	}
	return true
}

// ControlPlane reports whether a field manager is a component of Kubernetes. They
// complete objects soon after they are created, and at any time after.
func ControlPlane(manager string) bool { return controlPlane[manager] }

var controlPlane = map[string]bool{
	"kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true, "kubelet": true,
	"cloud-controller-manager": true, "clusterrole-aggregation-controller": true,
}

// controllerFields are fields outside status that controllers write at any time,
// whoever owns them. A change of one is no drift, and no conflict either: a
// controller puts it right by itself.
var controllerFields = []struct {
	group string // of the kind; empty for every group
	path  []string
}{
	{"", []string{"metadata", "annotations", "deployment.kubernetes.io/revision"}},
	// The API server counts the changes of a DaemonSet's template.
	{"apps", []string{"metadata", "annotations", "deprecated.daemonset.template.generation"}},
	// By autoscaling/v1 a part of the status shows as annotations.
	{"autoscaling", []string{"metadata", "annotations", "autoscaling.alpha.kubernetes.io/conditions"}},
	{"autoscaling", []string{"metadata", "annotations", "autoscaling.alpha.kubernetes.io/current-metrics"}},
	// What injects the certificate authorities of webhooks writes these.
	{"admissionregistration.k8s.io", []string{"webhooks", anyItem, "clientConfig", "caBundle"}},
	{"apiextensions.k8s.io", []string{"spec", "conversion", "webhook", "clientConfig", "caBundle"}},
	{"apiregistration.k8s.io", []string{"spec", "caBundle"}},
}

// anyItem stands for any item of a list.
const anyItem = "[]"

// isControllers reports whether controllers write a field of the object's kind.
func (i Images) isControllers(path fieldpath.Path) bool {
	for _, f := range controllerFields {
		if (f.group == "" || f.group == i.Live.GroupVersionKind().Group) && matches(path, f.path) {
			return true
		}
	}
	return false
}

func matches(path fieldpath.Path, names []string) bool {
	if len(path) != len(names) {
		return false
	}
	for i, element := range path {
		name := anyItem
		if element.FieldName != nil {
			name = *element.FieldName
		}
		if name != names[i] {
			return false
		}
	}
	return true
}
