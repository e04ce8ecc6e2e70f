package v1alpha1

import "k8s.io/apimachinery/pkg/types"

// PackageSnapshot is a package of Crossplane as it is to be.
type PackageSnapshot struct {
	// apiVersion is pkg.crossplane.io/v1.
	//
	// +kubebuilder:validation:Enum=pkg.crossplane.io/v1
	APIVersion string `json:"apiVersion"`

	// kind is the kind of the package.
	//
	// +kubebuilder:validation:Enum=Provider;Configuration;Function
	Kind string `json:"kind"`

	// metadata is the part of the package's metadata that counts.
	Metadata SnapshotMetadata `json:"metadata"`

	// spec is the spec of the package. Values with which Crossplane would do
	// otherwise than was checked are not allowed.
	Spec SnapshotSpec `json:"spec"`
}

// SnapshotMetadata is the part of the package's metadata that counts.
type SnapshotMetadata struct {
	// name is the name of the package.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`

	// uid is that of the package, if it is installed. If it is given, no other
	// package of the name is changed.
	//
	// +optional
	UID types.UID `json:"uid,omitempty"`

	// labels are put on the package.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	Labels map[string]string `json:"labels,omitempty"`
}

// SnapshotSpec is the spec of a package. The names are those of pkg.crossplane.io/v1.
type SnapshotSpec struct {
	// package is the image, by a tag that is a full version, such as
	// xpkg.crossplane.io/crossplane-contrib/provider-nop:v0.4.0.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Package string `json:"package"`

	// revisionActivationPolicy is Automatic: the Transaction waits until Crossplane
	// has activated the revision.
	//
	// +optional
	// +kubebuilder:validation:Enum=Automatic
	RevisionActivationPolicy string `json:"revisionActivationPolicy,omitempty"`

	// revisionHistoryLimit is how many revisions Crossplane keeps.
	//
	// +optional
	// +kubebuilder:validation:Minimum=0
	RevisionHistoryLimit *int64 `json:"revisionHistoryLimit,omitempty"`

	// packagePullPolicy is IfNotPresent: with Always a tag that moves later installs
	// another image than was checked.
	//
	// +optional
	// +kubebuilder:validation:Enum=IfNotPresent
	PackagePullPolicy string `json:"packagePullPolicy,omitempty"`

	// packagePullSecrets are Secrets in the namespace of Crossplane with which the
	// image is read.
	//
	// +optional
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	PackagePullSecrets []SecretRef `json:"packagePullSecrets,omitempty"`

	// ignoreCrossplaneConstraints installs the package whatever version of
	// Crossplane it is for.
	//
	// +optional
	IgnoreCrossplaneConstraints *bool `json:"ignoreCrossplaneConstraints,omitempty"`

	// commonLabels are put by Crossplane on what it makes for the package.
	//
	// +optional
	// +kubebuilder:validation:MaxProperties=64
	CommonLabels map[string]string `json:"commonLabels,omitempty"`

	// runtimeConfigRef names the DeploymentRuntimeConfig with which the package runs.
	//
	// +optional
	RuntimeConfigRef *RuntimeConfigRef `json:"runtimeConfigRef,omitempty"`
}

// SecretRef names a Secret in the namespace of Crossplane.
type SecretRef struct {
	// name is the name of the Secret.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}

// RuntimeConfigRef names the DeploymentRuntimeConfig with which a package runs.
type RuntimeConfigRef struct {
	// apiVersion is that of the DeploymentRuntimeConfig; Crossplane has a default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=253
	APIVersion string `json:"apiVersion,omitempty"`

	// kind is that of the DeploymentRuntimeConfig; Crossplane has a default.
	//
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Kind string `json:"kind,omitempty"`

	// name is the name of the DeploymentRuntimeConfig.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`
}
