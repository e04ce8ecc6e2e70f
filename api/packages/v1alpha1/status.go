package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// The types of conditions.
const (
	// Validated: everything was checked, and nothing stands in the way.
	Validated = "Validated"
	// Installed: the Transaction has committed.
	Installed = "Installed"
	// Ready: the PackageTransaction has ended well.
	Ready = "Ready"
	// Synced: the last look of janusd met no error of its own.
	Synced = "Synced"
	// Stalled: the PackageTransaction has ended, and not well.
	Stalled = "Stalled"
)

// PackageTransactionStatus is what has been done so far.
type PackageTransactionStatus struct {
	// observedGeneration is the metadata.generation that the status is about.
	//
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// failures is how many attempts have failed.
	//
	// +optional
	Failures int64 `json:"failures,omitempty"`

	// transactionNumber is given with the lock, and rises by one each time. No two
	// PackageTransactions have the same.
	//
	// +optional
	TransactionNumber int64 `json:"transactionNumber,omitempty"`

	// proposedLockPackages are all packages that Crossplane's Lock has after the
	// change, those that stay as they are among them.
	//
	// +optional
	// +listType=atomic
	ProposedLockPackages []LockPackage `json:"proposedLockPackages,omitempty"`

	// startTime is when the PackageTransaction got the lock.
	//
	// +optional
	StartTime *metav1.Time `json:"startTime,omitempty"`

	// completionTime is when it ended, well or not.
	//
	// +optional
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`

	// retryTime is when the next attempt begins, after one that has failed.
	//
	// +optional
	RetryTime *metav1.Time `json:"retryTime,omitempty"`

	// transactionRef names the Transaction of the last attempt.
	//
	// +optional
	TransactionRef *TransactionRef `json:"transactionRef,omitempty"`

	// conditions are Validated, Installed, Ready and Synced; and Stalled after an end
	// that is not a good one.
	//
	// +optional
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// LockPackage is an entry of Crossplane's Lock after the change.
type LockPackage struct {
	// name is the name of the revision.
	Name string `json:"name"`

	// source is the repository of the package.
	Source string `json:"source"`

	// version is the tag, and for what the change installs the digest: tag@digest.
	Version string `json:"version"`

	// dependencies are the packages that it needs.
	//
	// +optional
	// +listType=atomic
	Dependencies []Dependency `json:"dependencies,omitempty"`
}

// Dependency is a package that another needs.
type Dependency struct {
	// package is the repository of the package.
	Package string `json:"package"`

	// kind is the kind of the package.
	//
	// +optional
	Kind string `json:"kind,omitempty"`

	// constraints is the range of versions.
	Constraints string `json:"constraints"`
}

// TransactionRef names a Transaction.
type TransactionRef struct {
	// namespace is that of the Transaction.
	Namespace string `json:"namespace"`

	// name is its name.
	Name string `json:"name"`
}
