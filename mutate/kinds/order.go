package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// installOrder lists kinds in the order in which they are made when a bundle is installed:
// first what others need to be accepted, then what workloads need to start, and last what
// has the API server ask a workload. A group of kinds shares a line.
var installOrder = [][]schema.GroupKind{
	{{Kind: "Namespace"}},
	{{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}},
	{
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}, {Group: "storage.k8s.io", Kind: "StorageClass"},
		{Group: "storage.k8s.io", Kind: "CSIDriver"}, {Group: "node.k8s.io", Kind: "RuntimeClass"}, {Group: "networking.k8s.io", Kind: "IngressClass"},
	},
	{{Kind: "ServiceAccount"}},
	{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}, {Group: "rbac.authorization.k8s.io", Kind: "Role"}},
	{{Group: "rbac.authorization.k8s.io", Kind: "ClusterRoleBinding"}, {Group: "rbac.authorization.k8s.io", Kind: "RoleBinding"}},
	{
		{Kind: "ResourceQuota"}, {Kind: "LimitRange"}, {Group: "networking.k8s.io", Kind: "NetworkPolicy"},
		{Group: "policy", Kind: "PodDisruptionBudget"},
	},
	{{Kind: "ConfigMap"}, {Kind: "Secret"}},
	{{Kind: "PersistentVolume"}},
	{{Kind: "PersistentVolumeClaim"}},
	{{Kind: "Service"}},
	{
		{Group: "apps", Kind: "DaemonSet"}, {Group: "apps", Kind: "Deployment"}, {Group: "apps", Kind: "ReplicaSet"},
		{Group: "apps", Kind: "StatefulSet"}, {Kind: "Pod"}, {Kind: "ReplicationController"},
		{Group: "batch", Kind: "Job"}, {Group: "batch", Kind: "CronJob"},
	},
	{{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}, {Group: "networking.k8s.io", Kind: "Ingress"}},
	nil, // Kinds that are not listed, such as custom resources.
	{{Group: "apiregistration.k8s.io", Kind: "APIService"}},
	{
		{Group: "admissionregistration.k8s.io", Kind: "MutatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration"},
		{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicy"},
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"},
	},
	{
		{Group: "admissionregistration.k8s.io", Kind: "MutatingAdmissionPolicyBinding"},
		{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicyBinding"},
	},
}

var installRanks = func() map[schema.GroupKind]int {
	ranks := map[schema.GroupKind]int{}
	for rank, list := range installOrder {
		for _, kind := range list {
			ranks[kind] = rank
		}
	}
	return ranks
}()

var unlistedRank = slices.IndexFunc(installOrder, func(list []schema.GroupKind) bool { return list == nil })

// InstallRank says where a kind comes when a bundle is installed: what has a lower rank is
// made before.
func InstallRank(kind schema.GroupKind) int {
	if rank, listed := installRanks[kind]; listed {
		return rank
	}
	return unlistedRank
}
