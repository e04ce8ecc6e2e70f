// Package v1alpha1 holds the PackageTransaction API of group pkg.janus.io.
//
// The types here are the source of the CRD under deploy/packages: the markers in the
// comments become its validation and the comments themselves become what
// `kubectl explain packagetransaction` prints. `make generate` writes both the CRD and
// the deep-copy functions; a test fails when either has drifted.
//
// The package knows nothing of the rest of Janus, so that other programs may
// import it to read and write PackageTransactions.
//
// +kubebuilder:object:generate=true
// +groupName=pkg.janus.io
package v1alpha1
