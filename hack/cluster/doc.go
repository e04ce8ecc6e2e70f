// Command janus-cluster is a Kubernetes control plane for development and
// tests, in one binary: the real etcd, kube-apiserver, kube-controller-manager
// and kube-scheduler, and a supervisor that runs them on the loopback
// interface.
//
//	janus-cluster run --kubeconfig kubeconfig --quiet-logs logs
//
// The first argument chooses what the binary is; "janus-cluster help" lists the
// choices, and "janus-cluster run --help" the flags of the supervisor. One of
// the choices is kubectl, the released one in everything but its name; a link
// named kubectl makes up for that:
//
//	janus-cluster kubectl --kubeconfig kubeconfig get nodes
//	ln -s janus-cluster kubectl && ./kubectl --kubeconfig kubeconfig get nodes
//
// The package internal/supervisor documents the files in the data directory,
// among them pids.json, by which a test finds a component to signal.
//
// Other versions of Kubernetes are built from the same sources with the requirements in
// versions, which are those of Kubernetes' own go.mod at that version, its staging modules
// replaced by the releases that belong to it:
//
//	go build -modfile=versions/v1.35.mod -o ../../bin/janus-cluster-v1.35 .
//
// With janus-cluster run --emulate 1.33 the components keep to the API and the features of an
// older version without another build.
//
// It is a module of its own so that the requirements of Kubernetes itself stay
// out of Janus, and it imports nothing of Janus.
package main
