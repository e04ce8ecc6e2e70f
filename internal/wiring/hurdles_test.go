package wiring

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// refusedBy is an answer of the API server about the target of a change, as the pre-flight
// meets it.
func refusedBy(reason string, code int32, text string) error {
	answer := &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Message: text}}
	found := asFault(errclass.Wrap(answer, "dry-run the creation of", "it", false))
	found.Reason = reason
	return found
}

var (
	fieldMissing = refusedBy(errclass.Invalid, 500, "failed to create typed patch object: .spec.owner: field not declared in schema")
	tooSmall     = refusedBy(errclass.Invalid, 422, "Deployment is invalid: spec.replicas: must be greater than or equal to 0")
	notServed    = errclass.New(errclass.Terminal, errclass.KindNotFound, "read", "it", "the cluster serves it in v1 and not in v2")
	noRole       = refusedBy(errclass.NotFound, 404, `rolebindings.rbac.authorization.k8s.io "reader" not found`)
	notThere     = errclass.New(errclass.Terminal, errclass.NotFound, "patch", "it", "it does not exist")
	grantsMore   = refusedBy(errclass.Rejected, 403, `user "x" is attempting to grant RBAC permissions not currently held`)
	noAccount    = refusedBy(errclass.Rejected, 403, `pods "a" is forbidden: error looking up service account shop/worker: serviceaccount "worker" not found`)
	noClass      = refusedBy(errclass.Rejected, 403, `pods "a" is forbidden: no PriorityClass with name high was found`)
	privileged   = refusedBy(errclass.Rejected, 403, `pods "a" is forbidden: violates PodSecurity "restricted:latest": privileged`)
	noQuota      = refusedBy(errclass.Rejected, 403, `configmaps "a" is forbidden: exceeded quota: one, requested: count/configmaps=1`)
	notCounted   = refusedBy(errclass.NotInEffect, 403, `configmaps "a" is forbidden: status unknown for quota: one, resources: count/configmaps`)
	webhookNo    = refusedBy(errclass.Rejected, 403, `admission webhook "a.example.com" denied the request: no`)
	policyNo     = refusedBy(errclass.Invalid, 422, `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no`)
	webhookDead  = refusedBy(errclass.ServerUnavailable, 500, `Internal error occurred: failed calling webhook "a": failed to call webhook: Post "https://hook.other.svc:443/?timeout=10s": service "hook" not found`)
	portTaken    = refusedBy(errclass.Invalid, 422, `Service "a" is invalid: spec.clusterIPs: Invalid value: failed to allocate IP 10.0.0.7: provided IP is already allocated`)
	exists       = errclass.New(errclass.Conflict, errclass.AlreadyExists, "create", "it", "it exists already")
	lacking      = &errclass.Error{Op: "create", Class: errclass.Terminal, Reason: errclass.AccessDenied, Verb: "create", Err: errors.New("may not")}
)

const (
	crd       = "apiextensions.k8s.io/v1 customresourcedefinitions CustomResourceDefinition"
	rbac      = "rbac.authorization.k8s.io/v1 "
	role      = rbac + "roles Role"
	binding   = rbac + "rolebindings RoleBinding"
	hooks     = "admissionregistration.k8s.io/v1 "
	configmap = "v1 configmaps ConfigMap"
	podOf     = "v1 pods Pod"
	service   = "v1 services Service"
	jobOf     = "batch/v1 jobs Job"
	gadget    = "example.com/v1 gadgets Gadget"
)

// explained is a kind of earlier change by a kind of refusal: whether the one can be the
// reason of the other. What cannot is refused before anything is changed.
var explained = map[string]struct {
	kind               api.ChangeType
	earlier, of, holds string // kind, namespace/name, content
	later, to, says    string
	err                error
	explained          bool
}{
	"a definition, a field that it gets":                 {api.Patch, crd, "/gadgets.example.com", "{}", gadget, "shop/a", "{}", fieldMissing, true},
	"a definition, a version that it serves":             {api.Update, crd, "/gadgets.example.com", "{}", gadget, "shop/a", "{}", notServed, true},
	"a definition that goes":                             {api.Delete, crd, "/gadgets.example.com", "{}", gadget, "shop/a", "{}", fieldMissing, false},
	"the definition of another kind":                     {api.Patch, crd, "/widgets.example.com", "{}", gadget, "shop/a", "{}", fieldMissing, false},
	"a definition, an object that is not there":          {api.Patch, crd, "/gadgets.example.com", "{}", gadget, "shop/a", "{}", notThere, false},
	"a definition, an object that is there":              {api.Patch, crd, "/gadgets.example.com", "{}", gadget, "shop/a", "{}", exists, false},
	"a role, a binding that refers to it":                {api.Create, role, "shop/reader", "{}", binding, "shop/reader", "{roleRef: {name: reader}}", noRole, true},
	"a role, a binding that refers to another":           {api.Create, role, "shop/writer", "{}", binding, "shop/reader", "{roleRef: {name: reader}}", noRole, false},
	"a role in another namespace":                        {api.Create, role, "other/reader", "{}", binding, "shop/reader", "{roleRef: {name: reader}}", noRole, false},
	"a role, a binding that would grant more":            {api.Update, role, "shop/reader", "{}", binding, "shop/reader", "{roleRef: {name: reader}}", grantsMore, true},
	"a role that has the right":                          {api.Patch, role, "shop/r", "{rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [create]}]}", configmap, "shop/a", "{}", lacking, true},
	"a role that has another verb":                       {api.Patch, role, "shop/r", "{rules: [{apiGroups: [\"\"], resources: [configmaps], verbs: [get]}]}", configmap, "shop/a", "{}", lacking, false},
	"a role that has another resource":                   {api.Patch, role, "shop/r", "{rules: [{apiGroups: [\"\"], resources: [secrets], verbs: [create]}]}", configmap, "shop/a", "{}", lacking, false},
	"a binding of the account":                           {api.Create, binding, "shop/b", "{subjects: [{kind: ServiceAccount, name: deployer, namespace: shop}]}", configmap, "shop/a", "{}", lacking, true},
	"a binding of all accounts":                          {api.Create, binding, "shop/b", "{subjects: [{kind: Group, name: \"system:serviceaccounts:shop\"}]}", configmap, "shop/a", "{}", lacking, true},
	"a binding of another account":                       {api.Create, binding, "shop/b", "{subjects: [{kind: ServiceAccount, name: other, namespace: shop}]}", configmap, "shop/a", "{}", lacking, false},
	"a binding in another namespace":                     {api.Create, binding, "other/b", "{subjects: [{kind: ServiceAccount, name: deployer, namespace: shop}]}", configmap, "shop/a", "{}", lacking, false},
	"a binding that goes":                                {api.Delete, binding, "shop/b", "{}", configmap, "shop/a", "{}", lacking, false},
	"a ServiceAccount, its Pod":                          {api.Create, "v1 serviceaccounts ServiceAccount", "shop/worker", "{}", podOf, "shop/a", "{spec: {serviceAccountName: worker}}", noAccount, true},
	"the default ServiceAccount, a Pod that names none":  {api.Patch, "v1 serviceaccounts ServiceAccount", "shop/default", "{}", podOf, "shop/a", "{spec: {}}", noAccount, true},
	"a ServiceAccount, the Pod of another":               {api.Create, "v1 serviceaccounts ServiceAccount", "shop/other", "{}", podOf, "shop/a", "{spec: {serviceAccountName: worker}}", noAccount, false},
	"a ServiceAccount, a Pod that is too privileged":     {api.Create, "v1 serviceaccounts ServiceAccount", "shop/worker", "{}", podOf, "shop/a", "{spec: {serviceAccountName: worker}}", privileged, false},
	"a PriorityClass, its Pod":                           {api.Create, "scheduling.k8s.io/v1 priorityclasses PriorityClass", "/high", "{}", podOf, "shop/a", "{spec: {priorityClassName: high}}", noClass, true},
	"a ConfigMap, a Pod without its PriorityClass":       {api.Create, configmap, "shop/c", "{}", podOf, "shop/a", "{spec: {priorityClassName: high}}", noClass, false},
	"a ConfigMap that a Deployment names, a wrong field": {api.Create, configmap, "shop/c", "{}", "apps/v1 deployments Deployment", "shop/a", "{spec: {x: c}}", tooSmall, false},
	"the label of the Namespace, a privileged Pod":       {api.Patch, "v1 namespaces Namespace", "/shop", "{}", podOf, "shop/a", "{}", privileged, true},
	"the label of another Namespace":                     {api.Patch, "v1 namespaces Namespace", "/other", "{}", podOf, "shop/a", "{}", privileged, false},
	"a Namespace, what it is given":                      {api.Create, "v1 namespaces Namespace", "/shop", "{}", "v1 serviceaccounts ServiceAccount", "shop/default", "{}", notThere, true},
	"a Namespace, what it is not given":                  {api.Create, "v1 namespaces Namespace", "/shop", "{}", configmap, "shop/a", "{}", notThere, false},
	"a quota, what is beyond it":                         {api.Patch, "v1 resourcequotas ResourceQuota", "shop/one", "{}", configmap, "shop/a", "{}", noQuota, true},
	"what goes and frees some of a quota":                {api.Delete, configmap, "shop/c", "{}", configmap, "shop/a", "{}", noQuota, true},
	"what is made beside it":                             {api.Create, configmap, "shop/c", "{}", configmap, "shop/a", "{}", noQuota, false},
	"what goes in another namespace":                     {api.Delete, configmap, "other/c", "{}", configmap, "shop/a", "{}", noQuota, false},
	"a quota that goes, what it has not counted":         {api.Delete, "v1 resourcequotas ResourceQuota", "shop/one", "{}", configmap, "shop/a", "{}", notCounted, true},
	"a quota of another namespace":                       {api.Delete, "v1 resourcequotas ResourceQuota", "other/one", "{}", configmap, "shop/a", "{}", notCounted, false},
	"what goes, a quota that is not counted":             {api.Delete, configmap, "shop/c", "{}", configmap, "shop/a", "{}", notCounted, false},
	"a Job that is suspended, its template":              {api.Patch, jobOf, "shop/a", "{}", jobOf, "shop/a", "{}", tooSmall, true},
	"another Job":                                        {api.Patch, jobOf, "shop/b", "{}", jobOf, "shop/a", "{}", tooSmall, false},
	"a Job that goes":                                    {api.Delete, jobOf, "shop/a", "{}", jobOf, "shop/a", "{}", tooSmall, false},
	"a Deployment that was changed before":               {api.Patch, "apps/v1 deployments Deployment", "shop/a", "{}", "apps/v1 deployments Deployment", "shop/a", "{}", tooSmall, false},
	"a webhook that goes, what it refuses":               {api.Delete, hooks + "validatingwebhookconfigurations ValidatingWebhookConfiguration", "/w", "{}", configmap, "shop/a", "{}", webhookNo, true},
	"a webhook that goes, what it does not answer for":   {api.Delete, hooks + "validatingwebhookconfigurations ValidatingWebhookConfiguration", "/w", "{}", configmap, "shop/a", "{}", webhookDead, true},
	"a policy, what it refuses":                          {api.Patch, hooks + "validatingadmissionpolicies ValidatingAdmissionPolicy", "/p", "{}", configmap, "shop/a", "{}", policyNo, true},
	"a webhook that completes objects, a wrong field":    {api.Create, hooks + "mutatingwebhookconfigurations MutatingWebhookConfiguration", "/w", "{}", gadget, "shop/a", "{}", fieldMissing, true},
	"a webhook that does not, a wrong field":             {api.Create, hooks + "validatingwebhookconfigurations ValidatingWebhookConfiguration", "/w", "{}", gadget, "shop/a", "{}", fieldMissing, false},
	"a webhook, a right that is lacking":                 {api.Delete, hooks + "validatingwebhookconfigurations ValidatingWebhookConfiguration", "/w", "{}", configmap, "shop/a", "{}", lacking, false},
	"what is behind a webhook":                           {api.Create, service, "other/hook", "{}", configmap, "shop/a", "{}", webhookDead, true},
	"what is not behind a webhook":                       {api.Create, service, "shop/hook", "{}", configmap, "shop/a", "{}", webhookDead, false},
	"an object that a webhook looks for":                 {api.Create, gadget, "shop/g", "{}", configmap, "shop/a", "{data: {ref: g}}", webhookNo, true},
	"a Service that gives an address up":                 {api.Delete, service, "other/old", "{}", service, "shop/a", "{}", portTaken, true},
	"a Service that takes one":                           {api.Create, service, "other/old", "{}", service, "shop/a", "{}", portTaken, false},
	"a Service that goes, a ConfigMap that is wrong":     {api.Delete, service, "shop/old", "{}", configmap, "shop/a", "{}", tooSmall, false},
}

func TestWhatAnEarlierChangeCanBeTheReasonOf(t *testing.T) {
	for name, c := range explained {
		t.Run(name, func(t *testing.T) {
			at := func(kind api.ChangeType, of, where, content string) step {
				words := strings.Fields(of)
				gv, err := schema.ParseGroupVersion(words[0])
				require.NoError(t, err)
				namespace, name, _ := strings.Cut(where, "/")
				s := step{kind: kind, ref: target.Ref{GVK: gv.WithKind(words[2]), GVR: gv.WithResource(words[1]), Namespace: namespace, Name: name}, account: types.NamespacedName{Namespace: "shop", Name: "deployer"}}
				require.NoError(t, yaml.Unmarshal([]byte(content), &s.content))
				return s
			}
			later := at(api.Create, c.later, c.to, c.says)
			assert.Equal(t, c.explained, explains(at(c.kind, c.earlier, c.of, c.holds), later, c.err), "%s: %v", hurdleOf(c.err), c.err)
			assert.False(t, explains(at(api.Create, configmap, "elsewhere/unrelated", "{}"), later, c.err))
		})
	}
}
