package kinds

import "k8s.io/apimachinery/pkg/runtime/schema"

// The kinds that have rules of their own.
var (
	Claim          = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	Volume         = schema.GroupKind{Kind: "PersistentVolume"}
	ServiceAccount = schema.GroupKind{Kind: "ServiceAccount"}
	Pod            = schema.GroupKind{Kind: "Pod"}
	Service        = schema.GroupKind{Kind: "Service"}
	EndpointsKind  = schema.GroupKind{Kind: "Endpoints"}
	StatefulSet    = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	Job            = schema.GroupKind{Group: "batch", Kind: "Job"}
)

// The resources that are looked at beside a target.
var (
	Claims          = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumeclaims"}
	Volumes         = schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}
	ServiceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	Endpoints       = schema.GroupVersionResource{Version: "v1", Resource: "endpoints"}
	Definitions     = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

	pods        = schema.GroupVersionResource{Version: "v1", Resource: "pods"}
	revisions   = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "controllerrevisions"}
	replicaSets = schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "replicasets"}
)

// RBACGroup is the API group of roles and bindings.
const RBACGroup = "rbac.authorization.k8s.io"

// Retain is the reclaim policy that keeps a volume.
const Retain = "Retain"
