// Package supervisor runs a small Kubernetes control plane on the loopback
// interface: etcd, kube-apiserver and, as asked for, kube-controller-manager,
// kube-scheduler and kwok, each as a process of its own.
//
// # Invariant
//
// A component never outlives its supervisor. An orderly stop ends the clients
// of the API server first, then the API server, then etcd, because an API
// server without its store waits for it instead of ending. A supervisor that
// is killed takes its components along through the parent-death signal of
// Linux. That signal follows the thread that started the child, not the
// process, so Run must be called on a goroutine that is locked to a thread
// living as long as the process: the main goroutine, locked in an init
// function.
//
// # Addresses
//
// Several clusters run side by side without knowing of each other. etcd
// listens on sockets inside the data directory. A TCP port is bound by the
// supervisor with SO_REUSEPORT for as long as the cluster lives, and the
// component binds it a second time. So a port cannot be lost between picking
// it and using it, nor while a component is being restarted.
//
// # Files
//
// The data directory holds
//
//	pki/              the authority, serving and client certificates, and the
//	                  key that signs ServiceAccount tokens
//	*.kubeconfig      one for each client; admin.kubeconfig is written last,
//	                  when everything is ready, unless Options.Kubeconfig
//	                  names another path
//	etcd/             the store
//	pids.json         component name to process id, and "supervisor"
//	audit-policy.yaml, kwok-stages.yaml
//
// A test may read pids.json and signal a component: SIGSTOP and SIGCONT to
// make it hang, SIGKILL to make it die, SIGTERM to make it end in order. With
// Options.RestartKilled a component that was ended by a signal is started
// again, on the same address and with the same data, and pids.json is replaced;
// without it, and for any component that exits by itself, the whole cluster
// stops and Run returns a *ExitError.
//
// # What it does not do
//
// The package knows nothing of Kubernetes types and uses no client library:
// it probes health endpoints, and creates Nodes, with plain HTTP requests.
// It runs one member of each component, without leader election, API
// aggregation or certificate signing. The garbage collector and the quota
// controller discover new kinds every 30 seconds, a constant in them; the
// periods that do have a flag are set short, but that of quotas: a full count
// from a stale cache would let in what admission has just counted. A test that
// cannot wait that long after creating a CustomResourceDefinition kills
// kube-controller-manager under RestartKilled, for a new one discovers at once.
package supervisor
