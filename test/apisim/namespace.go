package apisim

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

func namespaceStrategy() strategy {
	return strategy{
		prepareCreate: func(obj content) {
			obj["status"] = content{"phase": string(corev1.NamespaceActive)}
			spec, _ := obj["spec"].(content)
			list, _ := spec["finalizers"].([]any)
			for _, f := range list {
				if f == string(corev1.FinalizerKubernetes) {
					return
				}
			}
			obj["spec"] = content{"finalizers": append(append([]any{}, list...), string(corev1.FinalizerKubernetes))}
		},
		prepareUpdate: func(obj, old content) {
			setOrDrop(obj, "spec", old)
			setOrDrop(obj, "status", old)
		},
		prepareStatus: func(obj, old content) { setOrDrop(obj, "spec", old) },
		canonicalize: func(obj content) {
			m := metadata(obj)
			labels, _ := m["labels"].(content)
			if labels[corev1.LabelMetadataName] == m["name"] {
				return
			}
			labels = maps.Clone(labels)
			if labels == nil {
				labels = content{}
			}
			labels[corev1.LabelMetadataName] = m["name"]
			m["labels"] = labels
		},
		reset:       fieldpath.NewSet(fieldpath.MakePathOrDie("status")),
		resetStatus: fieldpath.NewSet(fieldpath.MakePathOrDie("spec")),
	}
}

// admitNamespace refuses to create in a namespace that is missing or on its way
// out.
func (r *request) admitNamespace(m content) error {
	if !r.kind.namespaced {
		return nil
	}
	namespace := r.find(r.kinds[namespaces], "", r.namespace)
	if namespace == nil {
		return apierrors.NewNotFound(schema.GroupResource{Resource: "namespaces"}, r.namespace)
	}
	status, _ := namespace.content["status"].(content)
	if text(status, "phase") != string(corev1.NamespaceTerminating) {
		return nil
	}
	name := text(m, "name")
	if name == "" {
		name = "Unknown/" + text(m, "generateName")
	}
	err := apierrors.NewForbidden(r.kind.groupResource(), name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", r.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: corev1.NamespaceTerminatingCause, Message: fmt.Sprintf("namespace %s is being terminated", r.namespace), Field: "metadata.namespace",
	})
	return err
}

// deleteNamespace begins the end of a namespace. It reports whether that is all.
func (r *request) deleteNamespace(old *stored, options *metav1.DeleteOptions) (bool, deletion, error) {
	if r.name == metav1.NamespaceDefault {
		return true, deletion{}, apierrors.NewForbidden(r.kind.groupResource(), r.name, errors.New("this namespace may not be deleted"))
	}
	if p := options.Preconditions; p != nil {
		if p.UID != nil && string(*p.UID) != uidOf(old.content) {
			return true, deletion{}, r.conflict("Precondition failed: UID in precondition: %v, UID in object meta: %v", *p.UID, uidOf(old.content))
		}
		if p.ResourceVersion != nil && *p.ResourceVersion != versionOf(old.content) {
			return true, deletion{}, r.conflict("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *p.ResourceVersion, versionOf(old.content))
		}
	}
	spec, _ := old.content["spec"].(content)
	if deleting(old.content) {
		pending, _ := spec["finalizers"].([]any)
		return len(pending) > 0, deletion{outcome: outcome{object: old}}, nil
	}
	if err := r.admit("DELETE", nil, old.content); err != nil {
		return true, deletion{}, err
	}
	obj := maps.Clone(old.content)
	m := ownMetadata(obj)
	m["deletionTimestamp"] = r.timestamp()
	setFinalizers(m, finalizersFor(finalizersOf(old.content), options))
	obj["status"] = content{"phase": string(corev1.NamespaceTerminating)}
	if r.dryRun {
		return true, deletion{outcome: outcome{object: r.unstored(obj)}}, nil
	}
	r.dirty = true
	return true, deletion{outcome: outcome{object: r.put(obj)}}, nil
}
