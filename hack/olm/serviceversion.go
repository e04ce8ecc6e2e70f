package main

import (
	_ "embed"
	"encoding/json"
)

// service is what the Lifecycle Manager installs of the manifests by itself.
type service struct {
	deployment, definition object
	clusterRules           []any
	ownRules               []any
}

// rules takes over those of a role.
func (s *service) rules(role object) {
	rules := field[[]any](role, "rules")
	if role.kind() == "ClusterRole" {
		s.clusterRules = append(s.clusterRules, rules...)
		return
	}
	s.ownRules = append(s.ownRules, rules...)
}

// description is what the catalogue says of Janus.
//
//go:embed description.md
var description string

// serviceVersion is the ClusterServiceVersion.
func (b *bundle) serviceVersion(s *service) object {
	containers := field[[]any](s.deployment, "spec", "template", "spec", "containers")
	image := field[string](containers[0].(map[string]any), "image") //nolint:forcetypeassert // A Deployment has one.
	return object{
		"apiVersion": "operators.coreos.com/v1alpha1",
		"kind":       "ClusterServiceVersion",
		"metadata": map[string]any{
			"name": "janus.v" + b.version,
			// The Lifecycle Manager fills it in.
			"namespace": "placeholder",
			"annotations": map[string]any{
				"alm-examples":   b.examples(),
				"capabilities":   "Seamless Upgrades",
				"categories":     "Developer Tools",
				"containerImage": image,
				"description":    "Ordered changes of Kubernetes objects that are made together or not at all.",
				"operatorframework.io/suggested-namespace": namespace,
			},
		},
		"spec": map[string]any{
			"version":        b.version,
			"displayName":    "Janus",
			"description":    description,
			"icon":           []any{map[string]any{"base64data": b.icon, "mediatype": "image/svg+xml"}},
			"keywords":       []any{"transaction", "rollback", "saga", "undo"},
			"links":          []any{map[string]any{"name": "Documentation", "url": "https://janus.io/janus/docs/README.md"}},
			"provider":       map[string]any{"name": "Janus"},
			"maturity":       "alpha",
			"minKubeVersion": "1.33.0",
			"relatedImages":  []any{map[string]any{"name": account, "image": image}},
			// janusd runs the Transactions of all namespaces. For some of them alone there are the chart
			// and kustomize.
			"installModes": []any{
				map[string]any{"type": "OwnNamespace", "supported": false}, map[string]any{"type": "SingleNamespace", "supported": false},
				map[string]any{"type": "MultiNamespace", "supported": false}, map[string]any{"type": "AllNamespaces", "supported": true},
			},
			"customresourcedefinitions": map[string]any{"owned": s.owned()},
			"install": map[string]any{"strategy": "deployment", "spec": map[string]any{
				"clusterPermissions": []any{map[string]any{"serviceAccountName": account, "rules": s.clusterRules}},
				"permissions":        []any{map[string]any{"serviceAccountName": account, "rules": s.ownRules}},
				"deployments": []any{map[string]any{
					"name": s.deployment.name(), "label": field[any](s.deployment, "metadata", "labels"), "spec": s.deployment["spec"],
				}},
			}},
		},
	}
}

// owned are the versions in which Transactions are served.
func (s *service) owned() []any {
	var out []any
	for _, version := range field[[]any](s.definition, "spec", "versions") {
		out = append(out, map[string]any{
			"name": s.definition.name(), "kind": field[string](s.definition, "spec", "names", "kind"), "displayName": "Transaction",
			"version":     version.(map[string]any)["name"], //nolint:forcetypeassert // The API server takes no other.
			"description": "An ordered list of changes to Kubernetes objects: either all land, or those that landed are rolled back.",
		})
	}
	return out
}

// examples are what a form for a Transaction begins with.
func (b *bundle) examples() string {
	text, err := json.MarshalIndent([]json.RawMessage{b.example}, "", "  ")
	if err != nil {
		panic(err) // It was decoded from YAML.
	}
	return string(text)
}
