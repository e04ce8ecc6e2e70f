package readiness

import "encoding/json"

// readyCondition is the rule of kinds that say themselves whether they are ready. To kstatus
// they are so too as long as they have said nothing.
func readyCondition(o object) State {
	c, isReady := o.is("Ready")
	switch {
	case isReady:
		return ready()
	case c.because() != "":
		return waiting("it is not ready: %s", c.because())
	default:
		return waiting("its condition Ready is not set yet")
	}
}

func namespace(o object) State {
	if phase := o.text("status", "phase"); phase != "Active" {
		return waiting("its phase is %q", phase)
	}
	return ready()
}

// definition is done when the API server serves its kind.
func definition(o object) State {
	if c, _ := o.condition("NamesAccepted"); c.status == "False" {
		return failed("its names are not accepted: %s", c.because())
	}
	c, established := o.is("Established")
	switch {
	case established:
		return ready()
	case c.status == "False" && c.reason != "Installing":
		return failed("it is not established: %s", c.because())
	default:
		return waiting("it is not established yet")
	}
}

// apiService is done when the API server reaches what serves it. kstatus does not know its
// condition.
func apiService(o object) State {
	c, available := o.is("Available")
	switch {
	case available:
		return ready()
	case c.because() != "":
		return waiting("it is not available: %s", c.because())
	default:
		return waiting("its condition Available is not set yet")
	}
}

// budget is done when the disruption controller can tell what it allows.
func budget(o object) State {
	if c, _ := o.condition("DisruptionAllowed"); c.reason == "SyncFailed" {
		return waiting("what it allows cannot be told: %s", c.because())
	}
	return ready()
}

// autoscaler is done when it can scale: it has its metrics, and finds its target.
func autoscaler(o object) State {
	if o.text("apiVersion") == "autoscaling/v1" {
		o = o.annotated("autoscaling.alpha.kubernetes.io/conditions")
	}
	for _, kind := range []string{"AbleToScale", "ScalingActive"} {
		c, is := o.is(kind)
		switch {
		case is, c.reason == "ScalingDisabled": // Another client has set replicas to 0.
		case c.because() != "":
			return waiting("it cannot scale: %s", c.because())
		default:
			return waiting("its controller has not looked at its target yet")
		}
	}
	return ready()
}

// annotated has the conditions that an annotation lists, of a version that has none in its status.
func (o object) annotated(name string) object {
	var conditions []any
	if json.Unmarshal([]byte(o.text("metadata", "annotations", name)), &conditions) != nil {
		conditions = nil
	}
	o.fields = map[string]any{"status": map[string]any{"conditions": conditions}}
	return o
}

// signingRequest is done when the certificate is there.
func signingRequest(o object) State {
	for _, kind := range []string{"Denied", "Failed"} {
		if c, is := o.is(kind); is {
			return failed("%s: %s", kind, c.because())
		}
	}
	_, approved := o.is("Approved")
	switch {
	case o.text("status", "certificate") != "":
		return ready()
	case approved:
		return waiting("approved, and its signer has not signed it yet")
	default:
		return waiting("nobody has approved it yet")
	}
}

// flowSchema is done when its priority level is there: before that it has no effect.
func flowSchema(o object) State {
	c, found := o.condition("Dangling")
	switch {
	case !found:
		return waiting("the API server has not looked at it yet")
	case c.status == "True":
		return waiting("%s", c.because())
	default:
		return ready()
	}
}
