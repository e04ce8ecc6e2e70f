// Command olm makes the bundle by which the Operator Lifecycle Manager installs Janus, from the
// manifests that everything else is made from:
//
//	hack/release/manifests.sh IMAGE | olm --version=v1.2.3 --output=DIRECTORY
//
// A bundle can't have ValidatingAdmissionPolicies. They, and the roles by which people create
// Transactions, go into a file of their own beside the bundle, to be applied before it.
package main
