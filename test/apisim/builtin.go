package apisim

import (
	"maps"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func v1Kind(group, name string) schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: group, Version: "v1", Kind: name}
}

// builtins are the kinds that every Server serves.
var builtins = allBuiltins()

func allBuiltins() []*kind {
	list := []*kind{
		{gvk: v1Kind("", "Namespace"), resource: "namespaces", shortNames: []string{"ns"}, status: true, unconditional: true, returnsDeleted: true,
			strategy: namespaceStrategy(), shape: shapeOf("", "Namespace", defaultNamespace)},
		{gvk: v1Kind("", "ConfigMap"), resource: "configmaps", shortNames: []string{"cm"}, namespaced: true, unconditional: true,
			strategy: strategy{validate: validateConfigMap, validateNew: validateConfigMapUpdate}, shape: shapeOf("", "ConfigMap", nil)},
		{gvk: v1Kind("", "Secret"), resource: "secrets", namespaced: true, unconditional: true, selectable: []string{"type"},
			strategy: strategy{validate: validateSecret, validateNew: validateSecretUpdate, prepareUpdate: prepareSecretUpdate}, shape: shapeOf("", "Secret", defaultSecret)},
		{gvk: v1Kind("", "ServiceAccount"), resource: "serviceaccounts", shortNames: []string{"sa"}, namespaced: true, unconditional: true, returnsDeleted: true,
			strategy: strategy{prepareCreate: namesOnly, prepareUpdate: func(obj, _ content) { namesOnly(obj) }}, shape: shapeOf("", "ServiceAccount", nil)},
		{gvk: v1Kind("", "Event"), resource: "events", shortNames: []string{"ev"}, namespaced: true, createOnUpdate: true, unconditional: true,
			shape: shapeOf("", "Event", nil)},
		{gvk: v1Kind("events.k8s.io", "Event"), resource: "events", shortNames: []string{"ev"}, namespaced: true, createOnUpdate: true, unconditional: true,
			shape: shapeOf("events.k8s.io", "Event", nil)},
		{gvk: v1Kind("coordination.k8s.io", "Lease"), resource: "leases", namespaced: true, createOnUpdate: true,
			strategy: strategy{prepareCreate: func(obj content) { prepareLease(obj, nil) }, prepareUpdate: prepareLease, validate: validateLease}, shape: shapeOf("coordination.k8s.io", "Lease", nil)},
		{gvk: v1Kind("rbac.authorization.k8s.io", "Role"), resource: "roles", namespaced: true, createOnUpdate: true, unconditional: true,
			shape: shapeOf("rbac.authorization.k8s.io", "Role", nil)},
		{gvk: v1Kind("rbac.authorization.k8s.io", "RoleBinding"), resource: "rolebindings", namespaced: true, createOnUpdate: true, unconditional: true,
			shape: shapeOf("rbac.authorization.k8s.io", "RoleBinding", nil)},
		{gvk: v1Kind("apps", "ControllerRevision"), resource: "controllerrevisions", namespaced: true, unconditional: true,
			strategy: strategy{validate: validateRevision, validateNew: validateRevisionUpdate}, shape: shapeOf("apps", "ControllerRevision", nil)},
		{gvk: crdKind, resource: "customresourcedefinitions", shortNames: []string{"crd", "crds"}, categories: []string{"api-extensions"}, status: true,
			strategy: crdStrategy(), shape: crdShape{}},
	}
	for _, k := range list {
		k.singular, k.listKind = singularOf(k.gvk.Kind), k.gvk.Kind+"List"
		k.schemas = embedded(k.groupVersion())
		k.types = k.schemas.types()
		k.strategy = withMetadata(k)
	}
	return list
}

func singularOf(kind string) string {
	out := []byte(kind)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

func shapeOf(group, name string, defaults func(runtime.Object)) shape {
	return newTypedShape(v1Kind(group, name), defaults)
}

func defaultSecret(obj runtime.Object) {
	secret := obj.(*corev1.Secret)
	if secret.Type == "" {
		secret.Type = corev1.SecretTypeOpaque
	}
	// The conversion to the internal type takes what was written as text.
	if len(secret.StringData) > 0 {
		data := map[string][]byte{}
		maps.Copy(data, secret.Data)
		for k, v := range secret.StringData {
			data[k] = []byte(v)
		}
		secret.Data = data
	}
	secret.StringData = nil
}

func prepareSecretUpdate(obj, old content) {
	if text(obj, "type") == "" {
		setOrDrop(obj, "type", old)
	}
}

// prepareLease drops what belongs to a feature that is off by default.
func prepareLease(obj, old content) {
	spec, _ := obj["spec"].(content)
	before, _ := old["spec"].(content)
	for _, k := range []string{"strategy", "preferredHolder"} {
		if _, ok := spec[k]; ok && before[k] == nil {
			spec = maps.Clone(spec)
			delete(spec, k)
			obj["spec"] = spec
		}
	}
}

// namesOnly cuts what a ServiceAccount says of its Secrets down to their names.
func namesOnly(obj content) {
	list, ok := obj["secrets"].([]any)
	if !ok {
		return
	}
	out := make([]any, len(list))
	for i, ref := range list {
		out[i] = content{}
		if fields, _ := ref.(content); text(fields, "name") != "" {
			out[i] = content{"name": fields["name"]}
		}
	}
	obj["secrets"] = out
}

func defaultNamespace(obj runtime.Object) {
	namespace := obj.(*corev1.Namespace)
	if namespace.Name == "" {
		return
	}
	if namespace.Labels == nil {
		namespace.Labels = map[string]string{}
	}
	namespace.Labels[corev1.LabelMetadataName] = namespace.Name
}
