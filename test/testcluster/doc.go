// Package testcluster gives tests a real Kubernetes API server, and on demand
// the controller manager, the scheduler and simulated Nodes behind it.
//
// A package that needs one cluster for all its tests says so once, and each
// test asks for it:
//
//	func TestMain(m *testing.M) {
//		os.Exit(testcluster.Main(m, testcluster.Options{ControllerManager: true}))
//	}
//
//	func TestSomething(t *testing.T) {
//		cluster := testcluster.Shared(t)
//		namespace := testcluster.Namespace(t)
//		client := dynamic.NewForConfig(cluster.Config())
//		…
//	}
//
// The cluster starts when the first test asks for it, so that running a single
// test that needs none costs nothing. If OfferVariable names one that runs already and has
// all that the package asks for, that one is used. A test that breaks things, or needs other
// options, calls Start and Stop by itself.
//
// # Invariant
//
// A cluster never outlives the test process, however that ends: the cluster
// stops when the pipe to it breaks and when its parent dies. And a test that
// asks for a cluster and cannot have it fails, with the reason. It is never
// skipped.
//
// # Binaries
//
// The package runs bin/janus-cluster, and bin/janus-kwok for Options.Nodes, in
// the root of the repository, and names bin/helm to those who install with it. A
// missing one is built there from hack/cluster, hack/kwok or hack/helm, once, however many packages are tested at the same time. That
// takes some minutes the first time, which counts towards the timeout of go
// test, so a continuous build makes them beforehand. A binary that exists is
// not checked against its sources. The environment variables
// JANUS_CLUSTER_BINARY, JANUS_KWOK_BINARY and JANUS_HELM_BINARY name other binaries. With JANUS_CLUSTER_EMULATES=1.33 a cluster keeps to the
// API and the features of that version.
//
// # What it does not do
//
// It offers no assertions, and no client but kubectl, which Cluster.Kubectl runs.
// A Pod on a simulated Node becomes Ready without running anything.
package testcluster
