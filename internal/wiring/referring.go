package wiring

import (
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/expression"
)

// What a change depends on is recorded when the Transaction is accepted: what it depends on by
// dependsOn, and the earlier changes whose targets it refers to. A rollback goes by that, and needs
// neither content nor sources for it.

// objectName is an object as another one refers to it: by its kind, whatever the version.
type objectName struct {
	schema.GroupKind
	namespace, name string
}

// targetName is how others refer to a target.
func targetName(t api.Target) objectName {
	return objectName{schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind(), t.Namespace, t.Name}
}

// relate records what each item depends on. The objects that its content refers to are given, as
// far as they are known. It returns the earlier changes whose targets they are.
func relate(t *api.Transaction, order []int, references map[int][]objectName) [][]int {
	needed := make([][]int, len(t.Spec.Changes))
	made, byName := map[objectName][]int{}, map[string]int{}
	for n, i := range order {
		item, change := &t.Status.Items[i], &t.Spec.Changes[i]
		on := map[int]bool{}
		for _, name := range change.DependsOn {
			if j, earlier := byName[name]; earlier {
				on[j] = true
			}
		}
		// Earlier changes of the same object have a rule of their own.
		refers := func(j int) { on[j] = on[j] || t.Status.Items[j].Target.Identity() != item.Target.Identity() }
		for _, name := range namesIn(change) {
			if j, earlier := byName[name]; earlier {
				refers(j)
			}
		}
		for _, object := range references[i] {
			for _, j := range made[object] {
				refers(j)
				needed[i] = append(needed[i], j)
			}
		}
		item.DependsOn = nil
		for _, j := range order[:n] {
			if on[j] {
				item.DependsOn = append(item.DependsOn, t.Status.Items[j].Name)
			}
		}
		byName[item.Name] = i
		if change.Type != api.Delete && change.Type != api.Await && item.State != api.ItemSkipped {
			key := targetName(item.Target)
			made[key] = append(made[key], i)
		}
	}
	return needed
}

// namesIn are the changes that the expressions of a change ask for.
func namesIn(c *api.Change) []string {
	texts := []string{c.When}
	if c.ReadyWhen != nil {
		texts = append(texts, c.ReadyWhen.Expression)
	}
	if c.GoneWhen != nil {
		texts = append(texts, c.GoneWhen.Expression)
	}
	if c.FailWhen != nil {
		texts = append(texts, c.FailWhen.Expression)
	}
	var out []string
	for _, text := range texts {
		if !strings.Contains(text, "objects") {
			continue
		}
		if e, err := expression.Compile(text); err == nil { // What is wrong with it is told by anyone who checks it.
			out = append(out, e.Names()...)
		}
	}
	return out
}

// referencesOf lists the objects that the content of a target refers to where it is beyond doubt:
// its owners, and what the Pods that it is, or makes, mount, read or run as.
func referencesOf(t api.Target, content map[string]any) []objectName {
	var out []objectName
	owners, _ := valueAt(content, "metadata", "ownerReferences").([]any)
	for _, entry := range owners {
		owner, _ := entry.(map[string]any)
		apiVersion, _ := owner["apiVersion"].(string)
		kind, _ := owner["kind"].(string)
		name, _ := owner["name"].(string)
		group := schema.FromAPIVersionAndKind(apiVersion, kind).GroupKind()
		out = append(out, objectName{group, t.Namespace, name}, objectName{group, "", name})
	}
	for _, spec := range podSpecsOf(t, content) {
		for _, object := range podReferences(spec) {
			out = append(out, objectName{schema.GroupKind{Kind: object.kind}, t.Namespace, object.name})
		}
	}
	return out
}

// podSpecsOf finds the spec of a Pod, or of the template that Pods are made from: where the built-in
// kinds have it, and many others after their example.
func podSpecsOf(t api.Target, content map[string]any) []map[string]any {
	paths := [][]string{{"spec", "template", "spec"}, {"spec", "jobTemplate", "spec", "template", "spec"}, {"template", "spec"}}
	if schema.FromAPIVersionAndKind(t.APIVersion, t.Kind).GroupKind() == podKind {
		paths = [][]string{{"spec"}}
	}
	var out []map[string]any
	for _, path := range paths {
		if spec, ok := valueAt(content, path...).(map[string]any); ok {
			out = append(out, spec)
		}
	}
	return out
}

// podObject is an object of its namespace that a Pod needs.
type podObject struct{ kind, name string }

// podFields are the fields of the spec of a Pod that name such an object, and where in them the
// name is.
var podFields = map[string][]struct{ kind, at string }{
	"configMap":             {{"ConfigMap", "name"}},
	"configMapRef":          {{"ConfigMap", "name"}},
	"configMapKeyRef":       {{"ConfigMap", "name"}},
	"secret":                {{"Secret", "secretName"}, {"Secret", "name"}},
	"secretRef":             {{"Secret", "name"}},
	"secretKeyRef":          {{"Secret", "name"}},
	"nodePublishSecretRef":  {{"Secret", "name"}},
	"azureFile":             {{"Secret", "secretName"}},
	"persistentVolumeClaim": {{"PersistentVolumeClaim", "claimName"}},
}

// podReferences finds what the spec of a Pod names.
func podReferences(spec map[string]any) []podObject {
	var out []podObject
	add := func(kind string, name any) {
		if text, ok := name.(string); ok && text != "" {
			out = append(out, podObject{kind, text})
		}
	}
	add("ServiceAccount", spec["serviceAccountName"])
	add("ServiceAccount", spec["serviceAccount"])
	secrets, _ := spec["imagePullSecrets"].([]any)
	for _, entry := range secrets {
		add("Secret", valueAt(asMap(entry), "name"))
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case []any:
			for _, entry := range v {
				walk(entry)
			}
		case map[string]any:
			for key, value := range v {
				for _, f := range podFields[key] {
					add(f.kind, valueAt(asMap(value), f.at))
				}
				walk(value)
			}
		}
	}
	for _, part := range []string{"volumes", "containers", "initContainers", "ephemeralContainers"} {
		walk(spec[part])
	}
	return out
}

func asMap(v any) map[string]any {
	out, _ := v.(map[string]any)
	return out
}
