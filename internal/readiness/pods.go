package readiness

import "strings"

// pod is done when it is ready, or has succeeded. One that no Node can take may yet get one,
// so that is no failure, unlike in kstatus; and one whose containers have failed for good is
// one, also unlike there.
func pod(o object) State {
	_, isReady := o.is("Ready")
	switch phase := o.text("status", "phase"); {
	case phase == "Succeeded":
		return ready()
	case phase == "Failed":
		if reason := o.text("status", "reason"); reason != "" {
			return failed("it has failed: %s", reason)
		}
		return failed("it has failed")
	case phase == "Running" && isReady:
		return ready()
	}
	if stuck := o.held("CrashLoopBackOff"); len(stuck) > 0 {
		return failed("containers crash again and again: %s", strings.Join(stuck, ", "))
	}
	if c, scheduled := o.is("PodScheduled"); !scheduled {
		if c.because() != "" {
			return waiting("it has no Node: %s", c.because())
		}
		return waiting("it has no Node yet")
	}
	if stuck := o.held(""); len(stuck) > 0 {
		return waiting("containers are not ready: %s", strings.Join(stuck, ", "))
	}
	return waiting("its containers are not ready")
}

// held names the containers that wait for a reason, and that if none was asked for.
func (o object) held(reason string) []string {
	var out []string
	for _, of := range []string{"initContainerStatuses", "containerStatuses"} {
		for _, c := range o.list("status", of) {
			switch why := c.text("state", "waiting", "reason"); {
			case why == "":
			case reason == "":
				out = append(out, c.text("name")+" ("+why+")")
			case why == reason:
				out = append(out, c.text("name"))
			}
		}
	}
	return out
}
