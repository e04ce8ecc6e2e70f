package packages

import (
	"crypto/tls"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Nobody has a right that is not needed: janusd, installed as it is offered and with exactly
// the rights that come with it, does everything that it ever does, and the API server's audit
// log then says which of them no request has needed, and what was refused.
//
// One story does that, and not the log of all tests together: each package of tests is a
// process of its own with a cluster of its own, some are given rights by other means or run
// alone, and a right would seem to be used as long as any forgotten test still asked for it.
// That janusd lacks no right is shown by all of test/e2e besides: there test/harness runs Janus with
// a token of its ServiceAccount.
//
// There are no exceptions. Who gives janusd a right has the story need it.

var janusdAccount = rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: ownNamespace, Name: "janusd"}

const janusdUser = "system:serviceaccount:" + ownNamespace + ":janusd"

func TestEveryRightIsNeeded(t *testing.T) {
	for name, install := range map[string][]string{
		"in all namespaces": {"kubectl create namespace orders", "kubectl apply -k deploy"},
		"in one namespace":  namespacedInstall,
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t)
			d.all(install)
			d.run("kubectl apply -f - <<'END'" + rightsFixture + "END")
			d.knows("patch secrets -n orders")
			d.knows("list leases -n " + ownNamespace)
			rights, since := d.rightsOf(janusdAccount), time.Now()

			all := name == "in all namespaces"
			d.everyDeed(all)
			var refused []string
			if !all {
				refused = []string{`create leases.coordination.k8s.io in "default"`, `get leases.coordination.k8s.io in "default"`}
			}
			d.exactly(janusdUser, rights, since, refused...)
			if all {
				d.people()
			}

			d.run("kubectl delete " + strings.TrimPrefix(install[1], "kubectl apply ") + " --timeout=2m")
			d.run("kubectl delete namespace orders && kubectl delete clusterrolebinding packages-test packages-scraper")
		})
	}
}

// knows waits until the API server knows of a right of janusd.
func (d *desk) knows(right string) {
	d.t.Helper()
	d.until("kubectl auth can-i "+right+" --as="+janusdUser+" 2>/dev/null", "yes") // It warns of verbs that it doesn't know.
}

// everyDeed has janusd do everything that it does. It is killed in between, and ends in
// order.
func (d *desk) everyDeed(all bool) {
	d.t.Helper()
	first := startJanusd(d, quickly)
	d.commitsAndHistory()
	d.rollsBack()
	d.waits()
	d.reachesOut(all)
	d.asksOfScrapers(first)
	second := d.isKilled(first, all)
	d.run("kubectl delete txn --all -n orders --timeout=1m")
	second.stop()
}

// quickly has a replica that is gone replaced soon.
const quickly = "--leader-elect-lease-duration=3s"

// asksOfScrapers scrapes the metrics, first without the role that is shipped for it.
func (d *desk) asksOfScrapers(j *janusd) {
	d.t.Helper()
	token := d.run("kubectl create token -n orders scraper")
	assert.Equal(d.t, http.StatusForbidden, d.scrape(j, token))
	d.run("kubectl create clusterrolebinding packages-scraper --clusterrole=janus-metrics-reader --serviceaccount=orders:scraper")
	require.Eventually(d.t, func() bool { return d.scrape(j, token) == http.StatusOK }, patience, 100*time.Millisecond,
		"janus-metrics-reader lets its holder scrape janusd")
}

// scrape returns the status of the answer.
func (d *desk) scrape(j *janusd, token string) int {
	d.t.Helper()
	address := ""
	require.Eventually(d.t, func() bool {
		address, _ = j.Field("serving metrics", "address")
		return address != ""
	}, patience, 50*time.Millisecond, "janusd serves metrics")
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // G402: janusd made the certificate itself.
	}, Timeout: patience}
	defer client.CloseIdleConnections()
	r, err := http.NewRequestWithContext(d.t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
	require.NoError(d.t, err)
	r.Header.Set("Authorization", "Bearer "+token)
	answer, err := client.Do(r)
	require.NoError(d.t, err)
	_, _ = io.Copy(io.Discard, answer.Body)
	require.NoError(d.t, answer.Body.Close())
	return answer.StatusCode
}
