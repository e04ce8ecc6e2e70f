package wiring

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
	"janus.io/janus/mutate/kinds"
)

// kindSet is a set of them, as "Kind.group" or "Kind" for the core group.
type kindSet map[schema.GroupKind]bool

func kindsOf(names ...string) kindSet {
	out := kindSet{}
	for _, name := range names {
		out[schema.ParseGroupKind(name)] = true
	}
	return out
}

var (
	mutating = kindsOf("MutatingWebhookConfiguration."+admissionGroup, "MutatingAdmissionPolicy."+admissionGroup, "MutatingAdmissionPolicyBinding."+admissionGroup)
	backends = kindsOf("Service", "Endpoints", "Pod", "Secret", "ConfigMap", "ReplicationController", "EndpointSlice.discovery.k8s.io", "NetworkPolicy.networking.k8s.io",
		"Deployment.apps", "StatefulSet.apps", "DaemonSet.apps", "ReplicaSet.apps")
	classed = map[schema.GroupKind]kindSet{
		{Group: "storage.k8s.io", Kind: "StorageClass"}:          kindsOf("PersistentVolumeClaim", "StorageClass.storage.k8s.io"),
		{Group: "storage.k8s.io", Kind: "VolumeAttributesClass"}: kindsOf("PersistentVolumeClaim"),
		{Group: "networking.k8s.io", Kind: "IngressClass"}:       kindsOf("Ingress.networking.k8s.io", "IngressClass.networking.k8s.io"),
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:      kindsOf("Pod", "PriorityClass.scheduling.k8s.io"),
		{Group: "node.k8s.io", Kind: "RuntimeClass"}:             kindsOf("Pod"),
		{Kind: "Node"}:             kindsOf("Pod"),
		{Kind: "PersistentVolume"}: kindsOf("PersistentVolumeClaim"),
		{Group: "certificates.k8s.io", Kind: "ClusterTrustBundle"}: kindsOf("Pod"),
	}
	podKind     = schema.GroupKind{Kind: "Pod"}
	accountKind = schema.GroupKind{Kind: "ServiceAccount"}
)

// defines: a CustomResourceDefinition of the kind of the later change.
func defines(e, later step, _ error) bool {
	return e.group() == target.CRDKind && e.kind != api.Delete && e.ref.Name == later.ref.GVR.GroupResource().String()
}

// suspends: the template of a Job can be changed once its controller has stopped it.
func suspends(e, later step, _ error) bool {
	return e.group() == kinds.Job && e.kind != api.Delete && e.ref.ID() == later.ref.ID()
}

// judges: a webhook or a policy; to delete one counts as well.
func judges(e, _ step, _ error) bool { return e.ref.GVK.Group == admissionGroup }

func mutates(e, _ step, _ error) bool { return mutating[e.group()] }

// backs: something in the Namespace of the Service that a webhook is behind.
func backs(e, _ step, err error) bool {
	return backends[e.group()] && e.ref.Namespace != "" && e.ref.Namespace == errclass.BackendOf(err)
}

// roleBefore: anyone who binds a role, or acts on behalf of a signer or a policy, needs rights
// that are no verb on the object.
func roleBefore(e, later step, err error) bool {
	if e.ref.GVK.Group != rolesGroup || e.kind == api.Delete && hurdleOf(err) != escalation {
		return false
	}
	return slices.Contains([]string{rolesGroup, admissionGroup, "certificates.k8s.io"}, later.ref.GVK.Group)
}

// named: an object that the later change names somewhere, such as the role of a binding.
func named(e, later step, _ error) bool {
	return e.kind != api.Delete && (e.ref.Namespace == "" || e.ref.Namespace == later.ref.Namespace) && mentions(later.content, e.ref.Name)
}

// owns: an owner that has to be created first, for its uid.
func owns(e, later step, err error) bool {
	content := unstructured.Unstructured{Object: later.content}
	return e.kind == api.Create && named(e, later, err) && slices.ContainsFunc(content.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.Kind == e.ref.GVK.Kind && owner.Name == e.ref.Name
	})
}

// binds: a claim that has to be created before its volume is one that is not retained.
func binds(e, later step, _ error) bool {
	claim, _, _ := unstructured.NestedMap(later.content, "spec", "claimRef")
	return e.kind == api.Create && e.group() == kinds.Claim && later.group() == kinds.Volume && claim["name"] == e.ref.Name && claim["namespace"] == e.ref.Namespace
}

// mentions reports whether a value is that text, or has it somewhere.
func mentions(v any, text string) bool {
	switch v := v.(type) {
	case string:
		return v == text
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return mentions(v, text) })
	case map[string]any:
		for _, value := range v {
			if mentions(value, text) {
				return true
			}
		}
	}
	return false
}

// home: the Namespace of the later change, by whose labels admission goes.
func home(e, later step, _ error) bool {
	return e.group() == target.NamespaceKind && e.kind != api.Delete && later.ref.Namespace != "" && e.ref.Name == later.ref.Namespace
}

// given: the control plane puts some objects into a Namespace that has been made.
func given(e, later step, err error) bool {
	return e.kind == api.Create && home(e, later, err) && slices.Contains(givenObjects, later.ref.GVK.Kind+" "+later.ref.Name)
}

// isQuota: a ResourceQuota of the Namespace.
func isQuota(e, later step, _ error) bool {
	return e.group() == schema.GroupKind{Kind: "ResourceQuota"} && e.ref.Namespace == later.ref.Namespace
}

// usesUp: what is deleted in the Namespace, or what may use less of a quota after a change:
// beside the number of objects a quota knows what Pods ask for, the capacity of claims and
// the ports of Services.
func usesUp(e, later step, _ error) bool {
	here := e.ref.Namespace != "" && e.ref.Namespace == later.ref.Namespace
	return here && (e.kind == api.Delete || e.kind != api.Create && slices.Contains(measured, e.group().Kind))
}

var measured = []string{
	"Pod", "PersistentVolumeClaim", "Service", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "ReplicationController", "Job", "CronJob",
}

func limits(e, later step, _ error) bool {
	return e.group() == schema.GroupKind{Kind: "LimitRange"} && e.ref.Namespace == later.ref.Namespace
}

// runsAs: the ServiceAccount of a Pod, which is "default" if it names none.
func runsAs(e, later step, _ error) bool {
	if e.group() != accountKind || e.kind == api.Delete || later.group() != podKind || e.ref.Namespace != later.ref.Namespace {
		return false
	}
	name, _ := valueAt(later.content, "spec", "serviceAccountName").(string)
	return e.ref.Name == name || name == "" && e.ref.Name == "default"
}

// classes: an object without a namespace that decides how others are made.
func classes(e, later step, _ error) bool { return classed[e.group()][later.group()] }

// allocates: a Service that has what the later one asks for, or whatever it may ask for.
func allocates(e, later step, _ error) bool {
	if later.group() != (schema.GroupKind{Kind: "Service"}) {
		return false
	}
	switch e.group() {
	case schema.GroupKind{Kind: "Service"}:
		return e.kind != api.Create
	case schema.GroupKind{Group: "networking.k8s.io", Kind: "ServiceCIDR"}, schema.GroupKind{Group: "networking.k8s.io", Kind: "IPAddress"}:
		return true
	}
	return false
}
