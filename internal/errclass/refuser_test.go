package errclass_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/internal/errclass"
)

// The words are those of kube-apiserver 1.36.
var refusals = map[errclass.Refuser][]string{
	errclass.ByWebhook:        {`admission webhook "a.example.com" denied the request: no`, `admission webhook "a.example.com" denied the request without explanation`},
	errclass.ByDeadWebhook:    {`Internal error occurred: failed calling webhook "a.example.com": failed to call webhook: Post "https://hook.shop.svc:443/?timeout=10s": service "hook" not found`},
	errclass.ByPolicy:         {`configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`, `failed to configure binding: no params found for policy binding with ` + "`Deny` parameterNotFoundAction"},
	errclass.ByPodSecurity:    {`pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged (container "a" must not set securityContext.privileged=true)`},
	errclass.ByFullQuota:      {`configmaps "a" is forbidden: exceeded quota: one, requested: count/configmaps=1, used: count/configmaps=2, limited: count/configmaps=2`},
	errclass.ByQuota:          {`pods "a" is forbidden: failed quota: cpu: must specify limits.cpu for: a`},
	errclass.ByUncountedQuota: {`services "a" is forbidden: status unknown for quota: one, resources: count/services`},
	errclass.ByServiceAccount: {`pods "a" is forbidden: error looking up service account shop/worker: serviceaccount "worker" not found`},
	errclass.ByEscalation:     {"roles.rbac.authorization.k8s.io \"a\" is forbidden: user \"x\" (groups=[]) is attempting to grant RBAC permissions not currently held:\n{APIGroups:[\"\"]}"},
	errclass.ByAllocation:     {`Service "a" is invalid: spec.ports[0].nodePort: Invalid value: 31777: provided port is already allocated`, `Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: the provided network does not match the current range`},
	errclass.ByAddress:        {`Service "a" is invalid: spec.clusterIPs: Invalid value: ["10.9.0.1"]: failed to allocate IP 10.9.0.1: provided IP is already allocated`},
	errclass.ByConversion:     {`conversion webhook for example.com/v1, Kind=Gadget failed: Post "https://hook.shop.svc:443/": no endpoints`},
	errclass.ByImpersonation: {
		`serviceaccounts "a" is forbidden: User "x" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`,
		`serviceaccounts "a" is forbidden: User "x" cannot impersonate:serviceaccount resource "serviceaccounts" in API group "authentication.k8s.io" in the namespace "shop"`,
		`roles.rbac.authorization.k8s.io "a" is forbidden: User "x" cannot impersonate-on:serviceaccount:get resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "shop"`,
	},
	"": {`Deployment.apps "a" is invalid: spec.replicas: must be greater than or equal to 0`, `configmaps "a" not found`, ``},
}

func TestWhatHasRefusedIsKnownByItsWords(t *testing.T) {
	for want, texts := range refusals {
		for _, text := range texts {
			answer := status(403, "Forbidden", text)
			assert.Equal(t, want, errclass.RefuserOf(answer), text)
			for _, sensitive := range []bool{false, true} {
				assert.Equal(t, want, errclass.RefuserOf(errclass.Wrap(answer, "create", "it", sensitive)), "where the words are withheld as well: %s", text)
			}
			if want != "" {
				assert.Regexp(t, `, because of (an?|the) .* \(its message is withheld`, errclass.Wrap(answer, "create", "it", true).Error(), text)
			}
			assert.NotEmpty(t, want.WayOut())
		}
	}
	denied := errclass.Wrap(status(403, "Forbidden", refusals[errclass.ByImpersonation][2]), "get", "Role shop/a", false)
	require.ErrorContains(t, denied, "; the installation of Janus has to let janusd act as that ServiceAccount for it", "no role of the ServiceAccount cures it")
	down := status(500, "InternalError", refusals[errclass.ByDeadWebhook][0])
	assert.Equal(t, "shop", errclass.BackendOf(down))
	assert.Equal(t, "shop", errclass.BackendOf(errclass.Wrap(down, "create", "Secret shop/a", true)))
	assert.Empty(t, errclass.BackendOf(status(422, "Invalid", "see https://a.shop.svc")))
}
