package processes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/testcluster"
)

// own are the resources that janusd reads and writes as itself in a namespace of
// Transactions; of ConfigMaps and Secrets it is the before-images alone.
var own = []string{"transactions", "leases", "events", "serviceaccounts", "controllerrevisions"}

// image is what before-images are called.
var image = regexp.MustCompile(`-rollback(-\d+)?$`)

// judgeAudit wants every request of janusd to a target to be made as the
// ServiceAccount of the Transaction.
func (w *world) judgeAudit() {
	account := map[string]string{}
	for _, s := range w.load.all() {
		account[s.name] = "system:serviceaccount:" + w.namespace + ":" + s.account
	}
	requests, err := w.cluster.Audit()
	require.NoError(w.t, err)
	for _, r := range requests {
		if r.Namespace != w.namespace || !strings.HasPrefix(r.UserAgent, "janusd/") {
			continue
		}
		assert.Equal(w.t, "system:serviceaccount:"+system+":janusd", r.User, "%s %s", r.Verb, r.RequestURI)
		w.counts.add("requests of janusd", 1)
		if testcluster.Unread(r) {
			// A before-image is created as janusd, and a target as the ServiceAccount; which of
			// them was cut off is not known.
			if r.ImpersonatedUser != "" {
				w.judgeRequest(r, account)
			}
			w.counts.add("creations cut off by a kill", 1)
			continue
		}
		isImage := slices.Contains([]string{configMap.plural, secret.plural}, r.Resource) && image.MatchString(r.Name)
		if slices.Contains(own, r.Resource) && r.APIGroup != "" || r.Resource == "serviceaccounts" || isImage {
			assert.Empty(w.t, r.ImpersonatedUser, "%s %s", r.Verb, r.RequestURI)
			continue
		}
		w.counts.add("requests of janusd to targets", 1)
		if w.restarted && r.Code == http.StatusForbidden && r.ImpersonatedUser == "" {
			// The log names who is impersonated only once that is allowed. An API server
			// that has just started refuses it until it knows the roles.
			w.counts.add("requests of janusd to targets refused as a whole", 1)
			continue
		}
		w.judgeRequest(r, account)
	}
}

// ofSaga is how the targets of a Transaction begin.
var ofSaga = regexp.MustCompile(`^(?:refused-)?(txn-\d+)`)

func (w *world) judgeRequest(r testcluster.AuditEvent, account map[string]string) {
	match := ofSaga.FindStringSubmatch(r.Name)
	switch {
	case match != nil:
		assert.Equal(w.t, account[match[1]], r.ImpersonatedUser, "%s %s", r.Verb, r.RequestURI)
	default:
		assert.Contains(w.t, r.ImpersonatedUser, "system:serviceaccount:"+w.namespace+":", "%s %s %s", r.Verb, r.RequestURI, r.Name)
	}
}

// judgeSecrecy wants the values of Secrets nowhere but in Secrets, and those that a
// Transaction writes in its spec.
func (w *world) judgeSecrecy() {
	ctx := w.t.Context()
	for _, j := range w.all() {
		w.silent(fmt.Sprintf("the log of janusd %d", j.PID()), j.Log(), oldCanary, newCanary)
	}
	for _, text := range w.scraped {
		w.silent("the metrics", text, oldCanary, newCanary)
	}
	events, err := w.Kube.EventsV1().Events(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w.t, err)
	for _, list := range []any{events} {
		w.silent("the events", dump(list), oldCanary, newCanary)
	}
	configMaps, err := w.Kube.CoreV1().ConfigMaps(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w.t, err)
	w.silent("the ConfigMaps", dump(configMaps), oldCanary, newCanary)
	locks, err := w.Kube.CoordinationV1().Leases(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w.t, err)
	w.silent("the Leases", dump(locks), oldCanary, newCanary)
	txns, err := w.Dynamic.Resource(api.Resource).Namespace(w.namespace).List(ctx, metav1.ListOptions{})
	require.NoError(w.t, err)
	for _, txn := range txns.Items {
		w.silent("Transaction "+txn.GetName(), dump(txn.Object), oldCanary)
		delete(txn.Object, "spec")
		w.silent("Transaction "+txn.GetName()+", spec apart", dump(txn.Object), newCanary)
	}
	// Nor at any time before.
	for name, versions := range w.history.txns {
		for _, v := range versions {
			w.silent(fmt.Sprintf("Transaction %s at %d", name, v.revision), dump(v.status), oldCanary, newCanary)
		}
	}
	w.counts.add("events about Transactions", len(events.Items))
}

func (w *world) silent(what, text string, canaries ...string) {
	for _, canary := range canaries {
		if strings.Contains(text, canary) || strings.Contains(text, encoded(canary)) {
			w.t.Errorf("%s tells the value of a Secret, %s", what, canary)
		}
	}
}

func dump(v any) string {
	content, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(content)
}
