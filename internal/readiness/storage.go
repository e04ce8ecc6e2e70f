package readiness

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// claim is done when it is bound to a volume of the size that it asks for.
func claim(o object) State {
	switch phase := o.text("status", "phase"); phase {
	case "Bound":
	case "Lost":
		return failed("its volume is lost")
	default:
		return waiting("it is not bound (phase %s); where the StorageClass has volumeBindingMode WaitForFirstConsumer a Pod has to use it first, so there wait for the Pod instead", phase)
	}
	want, has := o.quantity("spec", "resources", "requests", "storage"), o.quantity("status", "capacity", "storage")
	if want == nil || has != nil && has.Cmp(*want) >= 0 {
		return ready()
	}
	resizing := o.text("status", "allocatedResourceStatuses", "storage")
	if resizing == "ControllerResizeInfeasible" || resizing == "NodeResizeInfeasible" {
		return failed("its volume cannot be resized: %s", resizing)
	}
	if _, is := o.is("FileSystemResizePending"); is {
		return waiting("its volume is resized when a Pod that uses it is started")
	}
	return waiting("its volume is not resized yet")
}

func volume(o object) State {
	switch phase := o.text("status", "phase"); phase {
	case "Available", "Bound", "Released":
		return ready()
	case "Failed":
		return failed("it has failed")
	default:
		return waiting("no claim can be bound to it yet (phase %s)", phase)
	}
}

// quota is done when it is in force. Until its use is counted, the API server refuses what
// it limits.
func quota(o object) State {
	hard, _, _ := unstructured.NestedMap(o.fields, "spec", "hard")
	for _, name := range slices.Sorted(maps.Keys(hard)) {
		want, has := o.quantity("spec", "hard", name), o.quantity("status", "hard", name)
		if want == nil {
			continue
		}
		if has == nil || has.Cmp(*want) != 0 || !o.has("status", "used", name) {
			return waiting("the use of %s is not counted yet", name)
		}
	}
	return ready()
}

// quantity is that of a field; nil if there is none.
func (o object) quantity(path ...string) *resource.Quantity {
	text := o.text(path...)
	if text == "" {
		return nil
	}
	q, err := resource.ParseQuantity(text)
	if err != nil {
		return nil
	}
	return &q
}

// service is done when it has an address: that of a load balancer, too.
func service(o object) State {
	switch {
	case o.text("spec", "type") == "ExternalName":
	case o.text("spec", "clusterIP") == "":
		return waiting("it has no clusterIP yet")
	case o.text("spec", "type") == "LoadBalancer" && len(o.list("status", "loadBalancer", "ingress")) == 0 && !o.has("spec", "externalIPs"):
		return waiting("its load balancer has no address yet")
	}
	return ready()
}

// secret is done at once, but for the token of a ServiceAccount, which a controller puts in.
func secret(o object) State {
	if o.text("type") == "kubernetes.io/service-account-token" && !o.has("data", "token") {
		return waiting("its token is not made yet")
	}
	return ready()
}
