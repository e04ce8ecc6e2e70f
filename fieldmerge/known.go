package fieldmerge

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v4/fieldpath"
)

// This file is all that is known of who writes what by itself: the components of the
// control plane, the fields that they and other controllers write at any time, those that
// the API server chooses, and those that it takes and does not show. Anyone who compares
// objects or asks for owners asks here: the merge of a rollback, drift, what is foreign in
// an object that a Create made, a re-creation, an undo, and the fields of a plan.

// ControlPlane reports whether a field manager is a component of Kubernetes. They
// complete objects soon after they are created, and at any time after.
func ControlPlane(manager string) bool { return controlPlane[manager] }

var controlPlane = map[string]bool{
	"kube-apiserver": true, "kube-controller-manager": true, "kube-scheduler": true, "kubelet": true,
	"kube-proxy": true, "cloud-controller-manager": true,
	// Distributions that have all of them in one program.
	"k3s": true, "kubelite": true,
	// What they apply, they apply by names of their own.
	"clusterrole-aggregation-controller": true, "ResourceClaimController": true,
	"api-priority-and-fairness-config-producer-v1": true, "api-priority-and-fairness-config-consumer-v1": true,
	// The controllers of volumes that run beside a storage driver.
	"csi-provisioner": true, "csi-attacher": true, "csi-resizer": true, "csi-snapshotter": true, "snapshot-controller": true,
}

// origin is by whom a known field is written.
type origin int

const (
	// made is a field that nobody but the API server or a controller writes: it counts
	// nowhere, no matter who owns it.
	made origin = iota + 1
	// injected is a field that people write as well, and that a controller writes at any
	// time. It counts nowhere but in a plan.
	injected
	// allocated is a field for which the API server chooses a value when an object is
	// written without. Another one than a dry run said, of which nobody is the owner, is
	// part of the same write.
	allocated
)

const (
	// anyItem stands for any item of a list.
	anyItem = "[]"
	// anyGroup is for what controllers of other kinds have taken over, too.
	anyGroup = "*"
)

type knownField struct {
	origin origin
	group  string   // of the kind
	kinds  []string // none for all of the group
	path   []string
}

func annotation(group, name string, kinds ...string) knownField {
	return knownField{origin: made, group: group, kinds: kinds, path: []string{"metadata", "annotations", name}}
}

// caBundle is where the certificate authority of a webhook or an API server is injected.
func caBundle(group string, path ...string) knownField {
	return knownField{origin: injected, group: group, path: append(path, "caBundle")}
}

func ofService(path ...string) knownField {
	return knownField{origin: allocated, kinds: []string{"Service"}, path: path}
}

var knownFields = []knownField{
	// The Deployment controller numbers and sizes revisions.
	annotation(anyGroup, "deployment.kubernetes.io/revision"),
	annotation("apps", "deployment.kubernetes.io/revision-history", "ReplicaSet"),
	annotation("apps", "deployment.kubernetes.io/desired-replicas", "ReplicaSet"),
	annotation("apps", "deployment.kubernetes.io/max-replicas", "ReplicaSet"),
	// The API server counts the templates of a DaemonSet.
	annotation("apps", "deprecated.daemonset.template.generation", "DaemonSet"),
	// The status of an autoscaler, as its old version shows it.
	annotation("autoscaling", "autoscaling.alpha.kubernetes.io/conditions", "HorizontalPodAutoscaler"),
	annotation("autoscaling", "autoscaling.alpha.kubernetes.io/current-metrics", "HorizontalPodAutoscaler"),
	// The binding of a claim to a volume.
	annotation("", "pv.kubernetes.io/bind-completed", "PersistentVolumeClaim"),
	annotation("", "pv.kubernetes.io/bound-by-controller", "PersistentVolumeClaim", "PersistentVolume"),
	annotation("", "volume.kubernetes.io/storage-provisioner", "PersistentVolumeClaim"),
	annotation("", "volume.beta.kubernetes.io/storage-provisioner", "PersistentVolumeClaim"),
	annotation("", "volume.kubernetes.io/selected-node", "PersistentVolumeClaim"),
	annotation("", "volume.kubernetes.io/storage-resizer", "PersistentVolumeClaim"),
	annotation("", "pv.kubernetes.io/migrated-to", "PersistentVolumeClaim", "PersistentVolume"),
	// What the controllers of endpoints, Nodes and tokens note, and who leads.
	annotation("", "endpoints.kubernetes.io/last-change-trigger-time", "Endpoints"),
	annotation("discovery.k8s.io", "endpoints.kubernetes.io/last-change-trigger-time", "EndpointSlice"),
	annotation("", "endpoints.kubernetes.io/over-capacity", "Endpoints"),
	annotation("", "control-plane.alpha.kubernetes.io/leader", "Endpoints", "ConfigMap"),
	annotation("", "node.alpha.kubernetes.io/ttl", "Node"),
	annotation("", "volumes.kubernetes.io/controller-managed-attach-detach", "Node"),
	annotation("", "csi.volume.kubernetes.io/nodeid", "Node"),
	{origin: made, kinds: []string{"Secret"}, path: []string{"metadata", "labels", "kubernetes.io/legacy-token-last-used"}},
	{origin: made, kinds: []string{"Secret"}, path: []string{"metadata", "labels", "kubernetes.io/legacy-token-invalid-since"}},

	caBundle("admissionregistration.k8s.io", "webhooks", anyItem, "clientConfig"),
	caBundle("apiextensions.k8s.io", "spec", "conversion", "webhook", "clientConfig"),
	caBundle("apiregistration.k8s.io", "spec"),

	ofService("spec", "clusterIP"),
	ofService("spec", "clusterIPs"),
	ofService("spec", "healthCheckNodePort"),
	ofService("spec", "ipFamilies"),
	ofService("spec", "ports", anyItem, "nodePort"),
}

// knownAs tells what is known of a field of a kind; 0 if nothing is.
func knownAs(kind schema.GroupKind, path fieldpath.Path) origin {
	for _, f := range knownFields {
		if (f.group == kind.Group || f.group == anyGroup) && (len(f.kinds) == 0 || slices.Contains(f.kinds, kind.Kind)) && matches(path, f.path) {
			return f.origin
		}
	}
	return 0
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

// untold reports whether a field is one that another than admission may have written without
// coming to own it: a Pod is bound, or scaled is what nobody had set the replicas of.
func untold(kind schema.GroupKind, path fieldpath.Path) bool {
	return kind == schema.GroupKind{Kind: "Pod"} && matches(path, []string{"spec", "nodeName"}) || matches(path, []string{"spec", "replicas"})
}

// byControllers reports whether a field is one that controllers write at any time, no matter who owns
// it: a change of one is no drift, no conflict, and makes nothing another client's.
func (o origin) byControllers() bool { return o == made || o == injected }

// kind is that of whichever of the images is there.
func (i Images) kind() schema.GroupKind {
	for _, obj := range []*unstructured.Unstructured{i.Live, i.After, i.Before} {
		if obj != nil && obj.GetKind() != "" {
			return obj.GroupVersionKind().GroupKind()
		}
	}
	return schema.GroupKind{}
}

// isControllers reports whether controllers write a field of the object's kind.
func (i Images) isControllers(path fieldpath.Path) bool {
	return knownAs(i.kind(), path).byControllers()
}

// writeOnly are the fields that the API server takes and does not show: it owns them to
// anyone who applied them, and stores the values elsewhere.
var writeOnly = []struct {
	kind     schema.GroupKind
	from, to string
}{
	{schema.GroupKind{Kind: "Secret"}, "stringData", "data"},
}

// shownAs returns a set of owned fields with what the API server shows of write-only ones
// beside them.
func shownAs(kind schema.GroupKind, set *fieldpath.Set) *fieldpath.Set {
	for _, w := range writeOnly {
		if w.kind != kind {
			continue
		}
		more := fieldpath.NewSet()
		set.Iterate(func(p fieldpath.Path) {
			if len(p) > 1 && p[0].FieldName != nil && *p[0].FieldName == w.from {
				path := p.Copy()
				path[0] = fieldpath.PathElement{FieldName: &w.to}
				more.Insert(path)
			}
		})
		set = set.Union(more)
	}
	return set
}
