package harness

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/testcluster"
)

func TestWhatIsWrongWithTheRightsOfJanusIsFound(t *testing.T) {
	account := "system:serviceaccount:shop:deployer"
	for name, c := range map[string]struct {
		event testcluster.AuditEvent
		found string
	}{
		"as itself":                  {testcluster.AuditEvent{UserAgent: "janusd", User: Identity}, ""},
		"as a ServiceAccount":        {testcluster.AuditEvent{UserAgent: "janusd/dev", User: Identity, ImpersonatedUser: account}, ""},
		"that may not":               {testcluster.AuditEvent{UserAgent: "janusd", User: Identity, ImpersonatedUser: account, Denied: true}, ""},
		"the test itself":            {testcluster.AuditEvent{UserAgent: "kubectl", User: "kubernetes-admin", Denied: true}, ""},
		"Janus as the administrator": {testcluster.AuditEvent{UserAgent: "janusd/dev", User: "kubernetes-admin", Verb: "get", RequestURI: "/x"}, `Janus was "kubernetes-admin", and not ` + Identity + ": get /x"},
		"Janus may not":              {testcluster.AuditEvent{UserAgent: "janusd", User: Identity, Denied: true, Verb: "get", RequestURI: "/x"}, "janusd lacks the right to get /x"},
	} {
		t.Run(name, func(t *testing.T) {
			err := JudgeRights([]testcluster.AuditEvent{c.event})
			if c.found == "" {
				assert.NoError(t, err)
				return
			}
			assert.EqualError(t, err, c.found)
		})
	}
}
