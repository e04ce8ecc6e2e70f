package main

import (
	"bytes"
	"fmt"
	"maps"
	"strings"

	"sigs.k8s.io/yaml"
)

// The names in the manifests that the Lifecycle Manager has its own ways for.
const (
	account   = "janusd"
	namespace = "janus-system"
)

// bundle is what is made.
type bundle struct {
	version, icon string
	example       []byte
	files         map[string][]byte
	// policies are what a bundle can't have, and what is not to be there without it.
	policies []object
}

// add makes the files of the manifests.
func (b *bundle) add(objects []object) error {
	var service service
	for _, o := range objects {
		switch kind := o.kind(); kind {
		case "Namespace", "ServiceAccount":
			// The Lifecycle Manager has the one, and makes the other.
		case "Deployment":
			service.deployment = o
		case "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding":
			b.policies = append(b.policies, o)
		case "CustomResourceDefinition":
			service.definition = o
			b.files["manifests/"+o.name()+".yaml"] = marshal(o)
		case "ClusterRole", "Role":
			switch {
			case bound(objects, o):
				service.rules(o)
			case creates(o):
				b.policies = append(b.policies, o)
			default:
				b.keep(o)
			}
		case "ClusterRoleBinding", "RoleBinding":
			if !ofAccount(o) {
				b.keep(o)
			}
		case "Service", "PodDisruptionBudget":
			b.keep(o)
		default:
			return fmt.Errorf("%s %s: a bundle has no place for it", kind, o.name())
		}
	}
	if service.deployment == nil || service.definition == nil || len(service.clusterRules) == 0 || len(b.policies) == 0 {
		return fmt.Errorf("the manifests lack a Deployment, a definition, a ClusterRole or policies")
	}
	b.files["manifests/janus.clusterserviceversion.yaml"] = marshal(b.serviceVersion(&service))
	b.files["policies.yaml"] = join(b.policies)
	return nil
}

// keep has an object in the bundle as it is, in the namespace of the Operator.
func (b *bundle) keep(o object) {
	o = maps.Clone(o)
	metadata := maps.Clone(field[map[string]any](o, "metadata"))
	delete(metadata, "namespace")
	o["metadata"] = metadata
	b.files["manifests/"+o.name()+"_"+strings.ToLower(o.kind())+".yaml"] = marshal(o)
}

// creates reports whether a role for people lets them create Transactions, or approve them. It comes
// with the policies: without them it would let its holders act as any ServiceAccount.
func creates(role object) bool {
	return role.name() == "janus-editor" || role.name() == "janus-approver"
}

// ofAccount reports whether a binding is that of janusd.
func ofAccount(binding object) bool {
	subjects := field[[]any](binding, "subjects")
	if len(subjects) != 1 {
		return false
	}
	subject, _ := subjects[0].(map[string]any)
	return subject["kind"] == "ServiceAccount" && subject["name"] == account && subject["namespace"] == namespace
}

// bound reports whether a role is bound to janusd.
func bound(objects []object, role object) bool {
	for _, o := range objects {
		if ofAccount(o) && field[string](o, "roleRef", "kind") == role.kind() && field[string](o, "roleRef", "name") == role.name() {
			return true
		}
	}
	return false
}

func marshal(o object) []byte {
	text, err := yaml.Marshal(o)
	if err != nil {
		panic(err) // It was decoded from such.
	}
	return text
}

func join(objects []object) []byte {
	var texts [][]byte
	for _, o := range objects {
		texts = append(texts, marshal(o))
	}
	return bytes.Join(texts, []byte("---\n"))
}
