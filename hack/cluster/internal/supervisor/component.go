package supervisor

import (
	"context"
	"debug/buildinfo"
	"fmt"
	"strings"
)

// The components, by the names that pids.json, the logs and the errors use.
const (
	etcd              = "etcd"
	apiServer         = "kube-apiserver"
	controllerManager = "kube-controller-manager"
	scheduler         = "kube-scheduler"
	kwok              = "kwok"
)

// component says how to run one program and how to see that it is ready.
type component struct {
	name string
	path string
	args []string
	// ready returns nil once the component does its work.
	ready func(context.Context) error
}

// auditPolicy records who did what when it is done, never an object's content.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted, Panic]
rules:
- level: Metadata
`

// controllers are the ones an operator's work depends on. Leaving the others
// out, autoscaling, attachment of volumes and certificates among them, saves
// their informers.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"endpoints-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"persistentvolume-binder-controller",
	"persistentvolume-protection-controller",
	"persistentvolumeclaim-protection-controller",
	"replicaset-controller",
	"replicationcontroller-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"service-cidr-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"storage-version-migrator-controller",
	"ttl-after-finished-controller",
	"validatingadmissionpolicy-status-controller",
	"volumeattributesclass-protection-controller",
}

// nodeControllers are needed only where there are Nodes: the first one takes
// the not-ready taint off a new Node, and the second one removes the Pods of a
// Node that is gone.
var nodeControllers = []string{
	"node-lifecycle-controller",
	"pod-garbage-collector-controller",
}

func etcdComponent(self string, l layout, fsync bool) component {
	// An advertised address must look like host:port. Nobody connects to the
	// ones of a single member, so they only have to agree with each other.
	const advertised = "unix://localhost:0"
	args := []string{
		etcd,
		"--name=janus",
		"--data-dir=" + l.path("etcd"),
		"--listen-client-urls=unix://" + l.etcdSocket(),
		"--advertise-client-urls=" + advertised,
		"--listen-peer-urls=unix://" + l.peerSocket(),
		"--initial-advertise-peer-urls=" + advertised,
		"--initial-cluster=janus=" + advertised,
		// A single member elects itself, so nothing is gained by waiting long.
		"--heartbeat-interval=20",
		"--election-timeout=200",
		// The API server compacts what is older than five minutes. Tests of size write more
		// in that time than the default of 2 GiB, after which etcd refuses every write.
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
		"--log-format=console",
	}
	if !fsync {
		args = append(args, "--unsafe-no-fsync")
	}
	return component{name: etcd, path: self, args: args, ready: probeSocket(l.etcdSocket(), "/health")}
}

func apiServerComponent(self string, l layout, a access, auditLog string) component {
	args := []string{
		apiServer,
		"--etcd-servers=unix://" + l.etcdSocket(),
		"--bind-address=127.0.0.1",
		"--secure-port=" + a.api.String(),
		"--permit-port-sharing",
		"--advertise-address=127.0.0.1",
		// Endpoints of the kubernetes Service may not be loopback addresses.
		"--endpoint-reconciler-type=none",
		"--service-cluster-ip-range=10.96.0.0/16",
		"--tls-cert-file=" + a.serving.certFile,
		"--tls-private-key-file=" + a.serving.keyFile,
		"--client-ca-file=" + a.ca.file(),
		"--authorization-mode=RBAC",
		"--allow-privileged",
		"--service-account-issuer=https://kubernetes.default.svc.cluster.local",
		"--service-account-key-file=" + l.signingKey(),
		"--service-account-signing-key-file=" + l.signingKey(),
		"--profiling=false",
		"--shutdown-delay-duration=0s",
		"--shutdown-watch-termination-grace-period=500ms",
	}
	if auditLog != "" {
		args = append(args,
			"--audit-policy-file="+l.auditPolicy(),
			"--audit-log-path="+auditLog,
			"--audit-log-format=json",
			// A request is in the log before its answer is complete.
			"--audit-log-mode=blocking",
			// The log is never rotated, so that it can be read as one file.
			"--audit-log-maxsize=1000000",
		)
	}
	return component{name: apiServer, path: self, args: args, ready: a.admin.probe(a.api.url() + "/readyz")}
}

func controllerManagerComponent(self string, l layout, a access, nodes bool) component {
	enabled := controllers
	if nodes {
		enabled = append(append([]string(nil), controllers...), nodeControllers...)
	}
	args := append([]string{
		controllerManager,
		"--kubeconfig=" + l.kubeconfig(controllerManager),
		"--leader-elect=false",
		"--controllers=" + strings.Join(enabled, ","),
		"--use-service-account-credentials",
		"--service-account-private-key-file=" + l.signingKey(),
		"--root-ca-file=" + a.ca.file(),
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--concurrent-gc-syncs=5",
		"--namespace-sync-period=20s",
		"--resource-quota-sync-period=5m",
		"--pvclaimbinder-sync-period=5s",
		"--node-monitor-period=1s",
		"--profiling=false",
	}, a.servingFlags(a.controllerManager)...)
	if minorOf(self) >= 35 {
		args = append(args, "--controller-shutdown-timeout=1s")
	}
	health := a.admin.probe(a.controllerManager.url() + "/healthz")
	account := a.admin.probe(a.api.url() + "/api/v1/namespaces/default/serviceaccounts/default")
	authority := a.admin.probe(a.api.url() + "/api/v1/namespaces/default/configmaps/kube-root-ca.crt")
	return component{name: controllerManager, path: self, args: args, ready: all(health, account, authority)}
}

func schedulerComponent(self string, l layout, a access) component {
	args := append([]string{
		scheduler,
		"--kubeconfig=" + l.kubeconfig(scheduler),
		"--leader-elect=false",
		"--kube-api-qps=500",
		"--kube-api-burst=1000",
		"--profiling=false",
	}, a.servingFlags(a.scheduler)...)
	return component{name: scheduler, path: self, args: args, ready: a.admin.probe(a.scheduler.url() + "/readyz")}
}

// minorOf returns the minor version of the Kubernetes that a program was built from: older ones
// lack some flags. It is 0 if the program does not say.
func minorOf(program string) int {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return 0
	}
	for _, module := range info.Deps {
		if module.Path == "k8s.io/kubernetes" {
			return minor(module.Version)
		}
	}
	return 0
}

// minor returns the minor version of a version, such as 36 of v1.36.3, or 0.
func minor(version string) int {
	var major, minor int
	if _, err := fmt.Sscanf(version, "v%d.%d", &major, &minor); err != nil {
		return 0
	}
	return minor
}

// emulating has a component of Kubernetes keep to the API and the features of a version.
func (c component) emulating(version string) component {
	if version != "" {
		c.args = append(c.args, "--emulated-version="+version)
	}
	return c
}

// with has a component of Kubernetes turn features on or off.
func (c component) with(gates string) component {
	if gates != "" {
		c.args = append(c.args, "--feature-gates="+gates)
	}
	return c
}

func kwokComponent(binary string, l layout, a access, nodes int) component {
	return component{
		name: kwok,
		path: binary,
		args: []string{
			"--kubeconfig=" + l.kubeconfig(kwok),
			"--config=" + l.stages(),
			"--manage-all-nodes",
		},
		ready: a.admin.nodesReady(a.api.url(), nodes),
	}
}
