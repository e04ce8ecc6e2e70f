package readiness

import (
	"fmt"
	"maps"
	"strconv"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// State is how far an object is.
type State struct {
	// Ready means that it has done its work, and Failed that it will not.
	Ready, Failed bool
	// Message says what is missing, in words that follow the name of the object.
	Message string
}

func ready() State { return State{Ready: true, Message: "ready"} }

func waiting(format string, args ...any) State { return State{Message: fmt.Sprintf(format, args...)} }

func failed(format string, args ...any) State {
	return State{Failed: true, Message: fmt.Sprintf(format, args...)}
}

// rule tells how far an object of a kind is.
type rule struct {
	of func(object) State
	// observed is set for kinds of which each controller writes status.observedGeneration:
	// until it has, the status says nothing.
	observed bool
}

// rules are those of the kinds of which kstatus is not believed. The kinds that it gets
// right are here too if their progress can be told in better words.
var rules = map[schema.GroupKind]rule{
	{Group: "apps", Kind: "Deployment"}:                               {deployment, true},
	{Group: "apps", Kind: "StatefulSet"}:                              {statefulSet, true},
	{Group: "apps", Kind: "DaemonSet"}:                                {daemonSet, true},
	{Group: "apps", Kind: "ReplicaSet"}:                               {replicas, true},
	{Kind: "ReplicationController"}:                                   {replicas, true},
	{Group: "batch", Kind: "Job"}:                                     {job, false},
	{Kind: "Pod"}:                                                     {pod, false},
	{Kind: "Service"}:                                                 {service, false},
	{Kind: "Secret"}:                                                  {secret, false},
	{Kind: "PersistentVolumeClaim"}:                                   {claim, false},
	{Kind: "PersistentVolume"}:                                        {volume, false},
	{Kind: "ResourceQuota"}:                                           {quota, false},
	{Kind: "Namespace"}:                                               {namespace, false},
	{Kind: "Node"}:                                                    {readyCondition, false},
	{Group: "networking.k8s.io", Kind: "ServiceCIDR"}:                 {readyCondition, false},
	{Group: "policy", Kind: "PodDisruptionBudget"}:                    {budget, true},
	{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:           {autoscaler, false},
	{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}: {definition, false},
	{Group: "apiregistration.k8s.io", Kind: "APIService"}:             {apiService, false},
	{Group: "certificates.k8s.io", Kind: "CertificateSigningRequest"}: {signingRequest, false},
	{Group: "flowcontrol.apiserver.k8s.io", Kind: "FlowSchema"}:       {flowSchema, false},
	{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy"}: {
		func(object) State { return ready() }, true},
}

// Unseen reports whether an object looks as if no controller had seen it yet: it is of a
// kind that is not built in, and its status is empty. If its kind has a status to be
// written, it is not ready.
func Unseen(u *unstructured.Unstructured) bool {
	gk := u.GroupVersionKind().GroupKind()
	if _, known := rules[gk]; known || scheme.Scheme.IsGroupRegistered(gk.Group) {
		return false
	}
	status, _, _ := unstructured.NestedFieldNoCopy(u.Object, "status")
	fields, _ := status.(map[string]any)
	return len(fields) == 0
}

// Wait is since when an object is waited for, and what time it is; zero if it is not told.
type Wait struct{ Since, Now time.Time }

// Of tells how far an object is. hasStatus says that its kind has the subresource status;
// it counts only for what is Unseen.
func Of(u *unstructured.Unstructured, hasStatus bool, wait Wait) (State, error) {
	u = numbered(u)
	o := object{u.Object, wait}
	if u.GetDeletionTimestamp() != nil {
		return leaving(u.GroupVersionKind().GroupKind(), o), nil
	}
	rule, known := rules[u.GroupVersionKind().GroupKind()]
	generation := u.GetGeneration()
	observed := o.number(0, "status", "observedGeneration")
	if (known && rule.observed || o.has("status", "observedGeneration")) && observed < generation {
		return waiting("its controller has not seen the change yet (generation %d, observed %d)", generation, observed), nil
	}
	if known {
		return rule.of(o), nil
	}
	if hasStatus && Unseen(u) {
		return waiting("its controller has written no status yet; for a kind that never gets one, leave out readyWhen or give it an expression"), nil
	}
	if state, stale := o.stale(generation); stale {
		return state, nil
	}
	found, err := status.Compute(u)
	if err != nil {
		return State{}, err
	}
	return State{
		Ready:   found.Status == status.CurrentStatus,
		Failed:  found.Status == status.FailedStatus || found.Status == status.TerminatingStatus,
		Message: fmt.Sprintf("%s: %s", found.Status, found.Message),
	}, nil
}

// leaving is the state of an object that is being deleted. A Job says how it has ended: its
// ttlSecondsAfterFinished may delete it at once, and with its Pods before it, which takes a while.
func leaving(gk schema.GroupKind, o object) State {
	if gk == (schema.GroupKind{Group: "batch", Kind: "Job"}) {
		if state := job(o); state.Ready || state.Failed {
			return state
		}
	}
	return failed("it is being deleted")
}

// numbered is an object whose status.observedGeneration is a number, or missing. Some kinds have it as
// text, such as the Rollout of Argo; text that is no number, such as a hash, tells nothing here.
func numbered(u *unstructured.Unstructured) *unstructured.Unstructured {
	text, found, err := unstructured.NestedString(u.Object, "status", "observedGeneration")
	status, _ := u.Object["status"].(map[string]any)
	if !found || err != nil {
		return u
	}
	content := maps.Clone(u.Object)
	status = maps.Clone(status)
	content["status"] = status
	delete(status, "observedGeneration")
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		status["observedGeneration"] = n
	}
	return &unstructured.Unstructured{Object: content}
}

// stale reports that a condition which decides is about an earlier generation. kstatus looks
// at status.observedGeneration alone, which many kinds of custom resources lack.
func (o object) stale(generation int64) (State, bool) {
	if o.has("status", "observedGeneration") {
		return State{}, false
	}
	for _, kind := range []string{"Stalled", "Reconciling", "Ready"} {
		c, found := o.condition(kind)
		if found && c.observed != 0 && c.observed < generation {
			return waiting("its controller has not seen the change yet (generation %d, condition %s is of %d)", generation, kind, c.observed), true
		}
	}
	return State{}, false
}
