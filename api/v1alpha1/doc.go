// Package v1alpha1 holds the Transaction API of group backup.janus.io.
//
// The types here are the source of the CRD under deploy/crd: the markers in the
// comments become its validation and the comments themselves become what
// `kubectl explain transaction` prints. `make generate` writes both the CRD and
// the deep-copy functions; a test fails when either has drifted.
//
// The package knows nothing of the rest of Janus, so that other programs may
// import it to read and write Transactions.
//
// +kubebuilder:object:generate=true
// +groupName=backup.janus.io
package v1alpha1
