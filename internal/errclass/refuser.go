package errclass

import (
	"errors"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Refuser is what in the API server has refused a request, as far as its answer tells.
type Refuser string

// The refusers that can be told apart, if only by their words.
const (
	ByWebhook        Refuser = "Webhook"        // an admission webhook has said no
	ByDeadWebhook    Refuser = "DeadWebhook"    // an admission webhook has not answered
	ByPolicy         Refuser = "Policy"         // an admission policy
	ByPodSecurity    Refuser = "PodSecurity"    // the pod-security level of the Namespace
	ByQuota          Refuser = "Quota"          // a ResourceQuota that wants a field that the object lacks
	ByFullQuota      Refuser = "FullQuota"      // a ResourceQuota that is used up, as counted last
	ByUncountedQuota Refuser = "UncountedQuota" // a ResourceQuota whose controller has yet to count what there is
	ByServiceAccount Refuser = "ServiceAccount" // the ServiceAccount of a Pod is not there
	ByEscalation     Refuser = "Escalation"     // nobody may grant more than they have
	ByAllocation     Refuser = "Allocation"     // a port is taken, or an address or a port is in no range
	ByAddress        Refuser = "Address"        // an address is taken, if only because a Service had it a moment ago
	ByConversion     Refuser = "Conversion"     // the webhook that converts between versions
	ByImpersonation  Refuser = "Impersonation"  // janusd may not act as the ServiceAccount, or not for this
	ByDeadAPI        Refuser = "DeadAPI"        // an API that another server has does not answer
)

// refusers are known by the words of their answers, which are the only thing that tells
// them apart. The first that fits counts.
var refusers = []struct {
	words *regexp.Regexp
	by    Refuser
}{
	{regexp.MustCompile(`admission webhook ".*" denied the request`), ByWebhook},
	{regexp.MustCompile(`failed calling webhook|failed to call webhook`), ByDeadWebhook},
	{regexp.MustCompile(`conversion webhook for `), ByConversion},
	{regexp.MustCompile(`(?s)[Pp]olicy ['"].*['"].* denied request|failed to configure (policy|binding)`), ByPolicy},
	{regexp.MustCompile(`violates PodSecurity`), ByPodSecurity},
	{regexp.MustCompile(`exceeded quota`), ByFullQuota},
	{regexp.MustCompile(`(failed|insufficient) quota`), ByQuota},
	{regexp.MustCompile(`status unknown for quota`), ByUncountedQuota},
	{regexp.MustCompile(`error looking up service account`), ByServiceAccount},
	{regexp.MustCompile(`attempting to grant RBAC permissions`), ByEscalation},
	{regexp.MustCompile(`failed to allocate IP .*: provided IP is already allocated`), ByAddress},
	{regexp.MustCompile(`already allocated|not in the valid range|failed to allocate`), ByAllocation},
	{regexp.MustCompile(`cannot impersonate(:serviceaccount|-on:serviceaccount:[a-z]+)? resource "`), ByImpersonation},
}

// RefuserOf returns what has refused a request; empty if that cannot be told.
func RefuserOf(err error) Refuser {
	var own *Error
	if errors.As(err, &own) && own.Refuser != "" {
		return own.Refuser
	}
	status, _ := Status(err)
	return refuserIn(status)
}

// policyName finds the admission policy in the answer of the API server, which nothing but its
// words name.
var policyName = regexp.MustCompile(`^[^']*ValidatingAdmissionPolicy '([^']+)' with binding '[^']*' denied request`)

// PolicyOf returns the name of the admission policy that has refused a request; empty if none
// has.
func PolicyOf(err error) string {
	status, _ := Status(err)
	if found := policyName.FindStringSubmatch(status.Message); found != nil {
		return found[1]
	}
	return ""
}

func refuserIn(s metav1.Status) Refuser {
	for _, r := range refusers {
		if s.Message != "" && r.words.MatchString(s.Message) {
			return r.by
		}
	}
	return ""
}

// backend finds the Service behind a webhook in what is said of it.
var backend = regexp.MustCompile(`https?://([a-z0-9-]+)\.([a-z0-9-]+)\.svc\b`)

// backendIn returns the namespace of the Service of a webhook that did not answer.
func backendIn(s metav1.Status) string {
	if found := backend.FindStringSubmatch(s.Message); found != nil {
		return found[2]
	}
	return ""
}

// names are what messages call those that are known by their words.
var names = map[Refuser]string{
	ByWebhook:        "an admission webhook",
	ByDeadWebhook:    "an admission webhook that does not answer",
	ByPolicy:         "an admission policy",
	ByPodSecurity:    "the pod-security level of the Namespace",
	ByQuota:          "a ResourceQuota that wants a field which the object lacks",
	ByFullQuota:      "a ResourceQuota that is used up",
	ByUncountedQuota: "a ResourceQuota that is not counted yet",
	ByServiceAccount: "a Pod's ServiceAccount that is not there",
	ByEscalation:     "the rule that nobody grants more than they have",
	ByAllocation:     "a port that is taken, or an address or a port in no range",
	ByAddress:        "an address that is taken",
	ByConversion:     "the webhook that converts between versions",
	ByImpersonation:  "the rule on who may act as a ServiceAccount",
}

// ways are what can be done about a refusal.
var ways = map[Refuser]string{
	ByWebhook:        "the ServiceAccount has the right: change what the webhook objects to",
	ByPolicy:         "the ServiceAccount has the right: change what the policy objects to",
	ByPodSecurity:    "change the Pod, or the pod-security label of the Namespace in an earlier change",
	ByQuota:          "state what the quota asks for, or change the quota in an earlier change",
	ByFullQuota:      "raise the quota, or free some of it in an earlier change",
	ByUncountedQuota: "it is tried again until the controller of the quota has counted what there is",
	ByServiceAccount: "create that ServiceAccount, in an earlier change if need be",
	ByEscalation:     "grant the ServiceAccount of the Transaction every right that is in it, or bind or escalate on the role",
	ByAddress:        "another Service has it, or the API server itself, for up to a minute after a Service that had it was deleted",
	ByImpersonation:  "the installation of Janus has to let janusd act as that ServiceAccount for it",
}

// WayOut says what can be done about a refusal that is not for lack of a verb.
func (r Refuser) WayOut() string {
	if way, ok := ways[r]; ok {
		return way
	}
	return "the ServiceAccount has the right: an admission plug-in or a policy refused it"
}

// BackendOf returns the namespace of the Service behind a webhook that did not answer; empty
// if err is about none.
func BackendOf(err error) string {
	var own *Error
	if errors.As(err, &own) && own.Backend != "" {
		return own.Backend
	}
	if status, ok := Status(err); ok && strings.Contains(status.Message, "webhook") {
		return backendIn(status)
	}
	return ""
}
