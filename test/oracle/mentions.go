package oracle

import (
	"encoding/json"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// mentions reports whether the content of a change has the target of another as an owner, or its
// Pods need it.
func (r *run) mentions(i, j int) bool {
	other := r.Spec.Changes[j].Target
	encoded, err := json.Marshal(r.contents[i])
	if err != nil {
		return false
	}
	var owned struct{ Metadata metav1.ObjectMeta }
	var object struct {
		Spec struct {
			corev1.PodSpec
			Template    corev1.PodTemplateSpec
			JobTemplate struct {
				Spec struct{ Template corev1.PodTemplateSpec }
			}
		}
		Template corev1.PodTemplateSpec
	}
	// What is malformed refers to nothing, and is refused.
	_, _ = json.Unmarshal(encoded, &owned), json.Unmarshal(encoded, &object)
	group := schema.FromAPIVersionAndKind(other.APIVersion, other.Kind).GroupKind()
	for _, owner := range owned.Metadata.OwnerReferences {
		if schema.FromAPIVersionAndKind(owner.APIVersion, owner.Kind).GroupKind() == group && owner.Name == other.Name {
			return true
		}
	}
	if group.Group != "" || r.Items[i].Namespace != r.Items[j].Namespace {
		return false
	}
	pods := []*corev1.PodSpec{&object.Spec.Template.Spec, &object.Spec.JobTemplate.Spec.Template.Spec, &object.Template.Spec}
	if target := r.Spec.Changes[i].Target; target.Kind == "Pod" && target.APIVersion == "v1" {
		pods = []*corev1.PodSpec{&object.Spec.PodSpec}
	}
	return slices.ContainsFunc(pods, func(pod *corev1.PodSpec) bool { return podNeeds(pod, group.Kind, other.Name) })
}

// podNeeds reports whether a Pod needs an object of its namespace.
func podNeeds(pod *corev1.PodSpec, kind, name string) bool {
	found := kind == "ServiceAccount" && (pod.ServiceAccountName == name || pod.DeprecatedServiceAccount == name)
	note := func(of, value string) { found = found || of == kind && value == name }
	for _, secret := range pod.ImagePullSecrets {
		note("Secret", secret.Name)
	}
	for _, v := range pod.Volumes {
		sources := []corev1.VolumeProjection{{}}
		if v.Projected != nil {
			sources = append(sources, v.Projected.Sources...)
		}
		for _, s := range sources {
			if s.ConfigMap != nil {
				note("ConfigMap", s.ConfigMap.Name)
			}
			if s.Secret != nil {
				note("Secret", s.Secret.Name)
			}
		}
		if v.ConfigMap != nil {
			note("ConfigMap", v.ConfigMap.Name)
		}
		if v.Secret != nil {
			note("Secret", v.Secret.SecretName)
		}
		if v.PersistentVolumeClaim != nil {
			note("PersistentVolumeClaim", v.PersistentVolumeClaim.ClaimName)
		}
	}
	for _, container := range slices.Concat(pod.InitContainers, pod.Containers) {
		for _, from := range container.EnvFrom {
			if from.ConfigMapRef != nil {
				note("ConfigMap", from.ConfigMapRef.Name)
			}
			if from.SecretRef != nil {
				note("Secret", from.SecretRef.Name)
			}
		}
		for _, env := range container.Env {
			if env.ValueFrom != nil && env.ValueFrom.ConfigMapKeyRef != nil {
				note("ConfigMap", env.ValueFrom.ConfigMapKeyRef.Name)
			}
			if env.ValueFrom != nil && env.ValueFrom.SecretKeyRef != nil {
				note("Secret", env.ValueFrom.SecretKeyRef.Name)
			}
		}
	}
	return found
}
