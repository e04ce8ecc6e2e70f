package wiring

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
	"janus.io/janus/internal/target"
)

// hurdle is a kind of refusal, by what has to change for it to go away.
type hurdle string

const (
	unserved   hurdle = "the version of the kind is not served"
	unfit      hurdle = "the object does not fit its kind"
	conversion hurdle = "the object cannot be converted between versions"
	dangling   hurdle = "what the object refers to is not found"
	absent     hurdle = "the object is not there"
	ownerless  hurdle = "the owner of the object, or the claim of a volume, is not there"
	denied     hurdle = "the ServiceAccount lacks a right on the object"
	escalation hurdle = "the ServiceAccount lacks a right that it would grant"
	webhook    hurdle = "a webhook or a policy has said no"
	dead       hurdle = "a webhook has not answered"
	security   hurdle = "the pod-security level of the Namespace"
	quota      hurdle = "a quota is used up"
	uncounted  hurdle = "a quota has not been counted"
	account    hurdle = "the ServiceAccount of the Pod is not found"
	allocation hurdle = "an address or a port is taken"
	admission  hurdle = "another admission plug-in has said no"
)

var byRefuser = map[errclass.Refuser]hurdle{
	errclass.ByWebhook: webhook, errclass.ByPolicy: webhook, errclass.ByDeadWebhook: dead, errclass.ByConversion: conversion,
	errclass.ByPodSecurity: security, errclass.ByQuota: quota, errclass.ByFullQuota: quota,
	errclass.ByUncountedQuota: uncounted, errclass.ByServiceAccount: account,
	errclass.ByEscalation: escalation, errclass.ByAllocation: allocation, errclass.ByAddress: allocation,
}

// hurdleOf tells what kind of refusal an error is; empty for one that no other change can
// be the reason of.
func hurdleOf(err error) hurdle {
	if h, ok := byRefuser[errclass.RefuserOf(err)]; ok {
		return h
	}
	_, answered := errclass.Status(err)
	switch errclass.ReasonOf(err) {
	case errclass.KindNotFound:
		return unserved
	case errclass.Invalid:
		return unfit
	case errclass.AccessDenied:
		return denied
	case errclass.Rejected:
		return admission
	case errclass.OwnerGone:
		return ownerless
	case errclass.NotFound:
		if answered {
			return dangling
		}
		return absent
	default:
		return ""
	}
}

// step is a change as the table of explanations looks at it.
type step struct {
	kind api.ChangeType
	ref  target.Ref
	// content of an earlier change is that of a role or of a binding; of others it may be left
	// out.
	content map[string]any
	// account is whom the change is made as.
	account types.NamespacedName
}

func (s step) group() schema.GroupKind { return s.ref.GVK.GroupKind() }

// explanation says which refusals of a later change an earlier one can be the reason of:
// it makes, changes or removes what the API server goes by.
type explanation struct {
	// name says what the earlier change is about.
	name string
	// earlier picks the changes, for a later one that was refused with err.
	earlier func(e, later step, err error) bool
	hurdles []hurdle
}

// explanations is the table of what can be the reason of what.
var explanations = []explanation{
	{"the definition of its kind", defines, []hurdle{unserved, unfit, conversion}},
	{"the suspension of the Job", suspends, []hurdle{unfit}},
	{"a webhook or a policy", judges, []hurdle{webhook, dead}},
	{"a webhook or a policy that completes objects", mutates, []hurdle{unfit, admission, security}},
	{"what is behind a webhook", backs, []hurdle{dead}},
	{"a role or a binding that gives the right", grants, []hurdle{denied}},
	{"a role or a binding, for one who grants", roleBefore, []hurdle{escalation, webhook, admission}},
	{"an object that it names", named, []hurdle{dangling, webhook, account, admission, escalation}},
	{"its owner", owns, []hurdle{ownerless}},
	{"the claim of a volume", binds, []hurdle{ownerless}},
	{"its Namespace", home, []hurdle{webhook, dead, security, admission}},
	{"what every Namespace is given", given, []hurdle{absent}},
	{"a quota", isQuota, []hurdle{quota, uncounted}},
	{"what uses a quota up", usesUp, []hurdle{quota}},
	{"a limit in its Namespace", limits, []hurdle{admission, quota}},
	{"the ServiceAccount of the Pod", runsAs, []hurdle{account, admission}},
	{"a class that it goes by", classes, []hurdle{admission}},
	{"what has the address or the port", allocates, []hurdle{allocation}},
}

// explains reports whether an earlier change can be the reason why a later one was refused.
func explains(earlier, later step, err error) bool {
	h := hurdleOf(err)
	return slices.ContainsFunc(explanations, func(x explanation) bool {
		return slices.Contains(x.hurdles, h) && x.earlier(earlier, later, err)
	})
}
