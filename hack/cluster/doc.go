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
// It is a module of its own so that the requirements of Kubernetes itself stay
// out of Janus, and it imports nothing of Janus.
package main
