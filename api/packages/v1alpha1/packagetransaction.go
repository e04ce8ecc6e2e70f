package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

const (
	// Finalizer keeps a PackageTransaction that is being deleted until its Transaction has
	// ended and its lock is released.
	Finalizer = "pkg.janus.io/lock-cleanup"

	// OutcomeFinalizer keeps the Transaction of a PackageTransaction until its outcome is
	// recorded there.
	OutcomeFinalizer = "pkg.janus.io/outcome"

	// LabelTransaction has the name of the PackageTransaction, on the Transaction that it is
	// compiled into and on the packages that this creates or changes.
	LabelTransaction = "pkg.janus.io/transaction"
)

// PackageTransaction installs, deletes or replaces one Crossplane package, and
// moves the packages that it depends on: all of it, or nothing. It is checked
// before anything is written, and then compiled into one Transaction, which is
// rolled back if it fails. One PackageTransaction runs at a time; the others wait
// in the order in which they were created.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=ptxn,categories=janus
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 63",message="metadata.name has at most 63 characters: it becomes a label"
// +kubebuilder:printcolumn:name="Change",type=string,JSONPath=`.spec.change`
// +kubebuilder:printcolumn:name="Validated",type=string,JSONPath=`.status.conditions[?(@.type=="Validated")].status`
// +kubebuilder:printcolumn:name="Installed",type=string,JSONPath=`.status.conditions[?(@.type=="Installed")].status`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Number",type=integer,JSONPath=`.status.transactionNumber`
// +kubebuilder:printcolumn:name="Failures",type=integer,priority=1,JSONPath=`.status.failures`
// +kubebuilder:printcolumn:name="Transaction",type=string,priority=1,JSONPath=`.status.transactionRef.name`
// +kubebuilder:printcolumn:name="Message",type=string,priority=1,JSONPath=`.status.conditions[?(@.type=="Ready")].message`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PackageTransaction struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec says what is to be done, and with which ServiceAccount. It cannot be
	// changed: create another PackageTransaction instead.
	//
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="spec is immutable: create another PackageTransaction instead"
	// +kubebuilder:validation:XValidation:rule="(self.change == 'Install') == has(self.install)",message="install is needed for change Install, and for no other"
	// +kubebuilder:validation:XValidation:rule="(self.change == 'Delete') == has(self.delete)",message="delete is needed for change Delete, and for no other"
	// +kubebuilder:validation:XValidation:rule="(self.change == 'Replace') == has(self.replace)",message="replace is needed for change Replace, and for no other"
	Spec PackageTransactionSpec `json:"spec"`

	// status is what has been done so far. It is also what janusd resumes from
	// after a crash: do not edit it.
	//
	// +optional
	// +default={"observedGeneration": -1}
	Status PackageTransactionStatus `json:"status,omitempty"`
}

// PackageTransactionList is a list of PackageTransactions.
//
// +kubebuilder:object:root=true
type PackageTransactionList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`
	Items           []PackageTransaction `json:"items"`
}

// ChangeType is what is done.
//
// +kubebuilder:validation:Enum=Install;Delete;Replace
type ChangeType string

// The types.
const (
	// Install installs a package, or moves it to another version if it is installed.
	Install ChangeType = "Install"
	// Delete deletes a package that no other needs.
	Delete ChangeType = "Delete"
	// Replace has a package take over the objects of another.
	Replace ChangeType = "Replace"
)

// PackageTransactionSpec says what is to be done, and with which ServiceAccount.
type PackageTransactionSpec struct {
	// change is what is done. Install installs a package, or moves it to another
	// version if it is installed. Delete deletes a package that no other needs.
	// Replace has a package take over the objects of another, which stays, inactive.
	Change ChangeType `json:"change"`

	// install is the package that is installed.
	//
	// +optional
	Install *InstallSpec `json:"install,omitempty"`

	// delete names the package that is deleted.
	//
	// +optional
	Delete *DeleteSpec `json:"delete,omitempty"`

	// replace names the package that is replaced, and has the one that takes its
	// place.
	//
	// +optional
	Replace *ReplaceSpec `json:"replace,omitempty"`

	// serviceAccountRef is the ServiceAccount with which the cluster is read for the
	// checks, and with which all changes are made. The Transaction is made in its
	// namespace. Anyone who creates a PackageTransaction needs the verb use on
	// serviceaccounts.use.janus.io, or impersonate, for this ServiceAccount.
	ServiceAccountRef ServiceAccountRef `json:"serviceAccountRef"`

	// retryLimit is how many attempts may fail. An attempt fails if its Transaction
	// is rolled back, or if a check could not be made, such as while a registry does
	// not answer. A check that finds something wrong ends the PackageTransaction at
	// once. The wait before the next attempt is 10 seconds, and doubles each time up
	// to 5 minutes; the lock is kept meanwhile.
	//
	// +optional
	// +default=5
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	RetryLimit *int64 `json:"retryLimit,omitempty"`

	// dryRun checks the change and says in status.proposedLockPackages what would
	// come of it. No Transaction is made.
	//
	// +optional
	DryRun bool `json:"dryRun,omitempty"`

	// allow lets a change pass that is refused otherwise.
	//
	// +optional
	Allow Allow `json:"allow,omitempty"`
}

// Allow lets a change pass that is refused otherwise.
type Allow struct {
	// downgrade lets packages go back to an older version.
	//
	// +optional
	Downgrade bool `json:"downgrade,omitempty"`

	// schemaNarrowing lets a package drop versions and fields of a kind, or narrow
	// them, although custom resources that exist are harmed or cannot be read.
	//
	// +optional
	SchemaNarrowing bool `json:"schemaNarrowing,omitempty"`

	// dataLoss lets custom resources be deleted with their definition. They do not
	// come back with a rollback or an undo.
	//
	// +optional
	DataLoss bool `json:"dataLoss,omitempty"`
}

// ServiceAccountRef names a ServiceAccount.
type ServiceAccountRef struct {
	// namespace is that of the ServiceAccount, and of the Transaction.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespace string `json:"namespace"`

	// name is the name of the ServiceAccount.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Name string `json:"name"`
}

// InstallSpec has the package that is installed.
type InstallSpec struct {
	// package is a snapshot of the package, so that each attempt does the same.
	Package PackageSnapshot `json:"package"`
}

// DeleteSpec names the package that is deleted.
type DeleteSpec struct {
	// source is the repository of the package, without tag and digest, such as
	// xpkg.crossplane.io/crossplane-contrib/provider-nop.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Source string `json:"source"`
}

// ReplaceSpec names the package that is replaced, and has the one that takes its place.
type ReplaceSpec struct {
	// source is the repository of the package that is replaced, without tag and
	// digest.
	//
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=512
	Source string `json:"source"`

	// package is a snapshot of the package that takes its place, so that each
	// attempt does the same.
	Package PackageSnapshot `json:"package"`
}
