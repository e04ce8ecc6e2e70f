package readiness

import (
	"fmt"
	"time"
)

// pods says how many of the Pods that are wanted there are in some state.
func pods(n, of int64, state string) string { return fmt.Sprintf("%d/%d Pods %s", n, of, state) }

// left says how many Pods are still there that are to go.
func left(n int64, kind string) string {
	if n == 1 {
		return "1 " + kind + " Pod is left"
	}
	return fmt.Sprintf("%d %s Pods are left", n, kind)
}

// available is the state of Pods that are wanted, and the number of those that have it:
// with minReadySeconds it is not enough to be ready.
func (o object) available() (int64, string) {
	least := o.number(0, "spec", "minReadySeconds")
	if least == 0 {
		return o.number(0, "status", "readyReplicas"), "ready"
	}
	return o.number(0, "status", "availableReplicas"), fmt.Sprintf("ready for %d s", least)
}

// deployment is done when all Pods are of the latest template and available, and no other
// is left. It counts Pods, as kubectl rollout status does; by the condition Progressing a
// paused Deployment would never be ready.
func deployment(o object) State {
	want := o.number(1, "spec", "replicas")
	all, updated := o.number(0, "status", "replicas"), o.number(0, "status", "updatedReplicas")
	n, state := o.available()
	message := ""
	switch {
	case updated < want:
		message = pods(updated, want, "updated")
	case all > want && updated == want:
		message = fmt.Sprintf("%s; %s", left(all-want, "old"), pods(n, all, state))
	case all > want:
		message = left(all-want, "surplus")
	case n < want:
		message = pods(n, want, state)
	default:
		return ready()
	}
	if c, _ := o.condition("Progressing"); c.reason == "ProgressDeadlineExceeded" && !o.mayProgress(c) {
		return failed("no progress within its progressDeadlineSeconds, %s%s", message, o.failure())
	}
	if o.truth("spec", "paused") {
		return waiting("%s, and it is paused (spec.paused)", message)
	}
	return waiting("%s%s", message, o.failure())
}

// mayProgress reports whether a Deployment that made no progress in time may make some since it
// was changed: its controller says so a little later, if the ReplicaSet of the template is there
// already. It has as long as before.
func (o object) mayProgress(over condition) bool {
	deadline := time.Duration(o.number(600, "spec", "progressDeadlineSeconds")) * time.Second
	return !o.wait.Since.IsZero() && !over.updated.After(o.wait.Since) && o.wait.Now.Before(o.wait.Since.Add(deadline))
}

// failure is why Pods cannot be made, such as a quota.
func (o object) failure() string {
	if c, ok := o.is("ReplicaFailure"); ok {
		return "; " + c.because()
	}
	return ""
}

// statefulSet is done when all Pods that its update strategy replaces are of the latest
// template, and all Pods are available. With OnDelete it replaces none.
func statefulSet(o object) State {
	want := o.number(1, "spec", "replicas")
	fresh := want - o.number(0, "spec", "updateStrategy", "rollingUpdate", "partition")
	n, state := o.available()
	switch updated := o.number(0, "status", "updatedReplicas"); {
	case o.text("spec", "updateStrategy", "type") != "OnDelete" && updated < fresh:
		return waiting("%s", pods(updated, fresh, "updated"))
	case n < want:
		return waiting("%s", pods(n, want, state))
	case o.number(0, "status", "replicas") > want:
		return waiting("%s", left(o.number(0, "status", "replicas")-want, "surplus"))
	default:
		return ready()
	}
}

// daemonSet is done when each Node that is to have a Pod has one that is available, of the
// latest template unless the update strategy leaves the replacement to a person.
func daemonSet(o object) State {
	want := o.number(0, "status", "desiredNumberScheduled")
	updated := o.number(0, "status", "updatedNumberScheduled")
	n, state := o.number(0, "status", "numberReady"), "ready"
	if least := o.number(0, "spec", "minReadySeconds"); least > 0 {
		n, state = o.number(0, "status", "numberAvailable"), fmt.Sprintf("ready for %d s", least)
	}
	switch {
	case o.text("spec", "updateStrategy", "type") != "OnDelete" && updated < want:
		return waiting("%s", pods(updated, want, "updated"))
	case n < want:
		return waiting("%s", pods(n, want, state))
	default:
		return ready()
	}
}

// replicas is the rule of what keeps a number of Pods and never replaces one.
func replicas(o object) State {
	want := o.number(1, "spec", "replicas")
	n, state := o.available()
	switch all := o.number(0, "status", "replicas"); {
	case n < want:
		return waiting("%s%s", pods(n, want, state), o.failure())
	case all > want:
		return waiting("%s", left(all-want, "surplus"))
	default:
		return ready()
	}
}

// job is done when it has completed. kstatus calls it Current when it has started.
func job(o object) State {
	if _, complete := o.is("Complete"); complete {
		return ready()
	}
	if c, failure := o.is("Failed"); failure {
		return failed("it has failed: %s", c.because())
	}
	succeeded := o.number(0, "status", "succeeded")
	switch {
	case o.truth("spec", "suspend"):
		return waiting("it is suspended (spec.suspend)")
	case o.text("status", "startTime") == "":
		return waiting("it has not started")
	case o.has("spec", "completions"):
		return waiting("%s", pods(succeeded, o.number(1, "spec", "completions"), "succeeded"))
	default:
		return waiting("%d Pods succeeded, %d at work", succeeded, o.number(0, "status", "active"))
	}
}
