// Command chart makes templates of the Helm chart from the manifests that kustomize
// installs, so that the CRD, the policies and all rights are written once:
//
//	go run ./hack/chart --deploy=deploy --output=deploy/chart/janus/templates
//
// The text of a manifest stays as it is, with its comments. What differs from release to
// release is put in: labels, the namespace, the ServiceAccounts. That the chart renders
// what kustomize builds is shown by tests in deploy, for what is generated and for the
// templates that are written by hand alike.
package main
