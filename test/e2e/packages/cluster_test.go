package packages

import (
	"strings"
	"time"

	"github.com/stretchr/testify/require"
)

const rollout = "kubectl rollout status deployment/janusd -n janus-system --timeout=2m"

// all types commands in turn.
func (d *desk) all(commands []string) {
	d.t.Helper()
	for _, command := range commands {
		d.run("DIST=" + d.dist + "; " + command)
	}
}

// everything lists all objects of the cluster and the rules of the roles that others add
// to. Not so what comes and goes by itself: events, and the Leases of the control plane.
func (d *desk) everything() string {
	d.t.Helper()
	return d.run(`
		kinds=$(kubectl api-resources --verbs=list -o name --sort-by=name | grep -vE '^(events|componentstatuses)' | paste -sd,)
		kubectl get "$kinds" -A --ignore-not-found --no-headers -o custom-columns=K:.kind,NS:.metadata.namespace,N:.metadata.name 2>/dev/null |
			grep -vE '^Lease +kube-|^(Node|PartialObjectMetadata) ' | tr -s ' ' | sort
		kubectl get clusterroles admin edit view -o jsonpath='{range .items[*]}{.rules}{"\n"}{end}'`)
}

// same waits until the cluster is as it was but for what stays.
func (d *desk) same(before string, stays []string) {
	d.t.Helper()
	wanted := strings.Split(before, "\n")
	wanted = append(wanted, stays...)
	var now []string
	for until := time.Now().Add(patience); time.Now().Before(until); {
		now = strings.Split(d.everything(), "\n")
		if len(now) == len(wanted) {
			break
		}
	}
	require.ElementsMatch(d.t, wanted, now)
}
