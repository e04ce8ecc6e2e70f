package kinds

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

const admissionGroup = "admissionregistration.k8s.io"

// records are what Janus writes for itself, as groups and resources.
var records = []schema.GroupResource{
	{Group: "backup.janus.io", Resource: "transactions"}, {Group: "backup.janus.io", Resource: "transactions/status"},
	{Group: "coordination.k8s.io", Resource: "leases"}, {Resource: "configmaps"}, {Resource: "secrets"},
}

// AsksAboutRecords reports whether the API server asks a webhook of a configuration about the records of
// Janus, and writes none if that does not answer. One that picks namespaces, objects or requests may
// leave them out.
func AsksAboutRecords(kind schema.GroupKind, configuration map[string]any) bool {
	if kind.Group != admissionGroup || kind.Kind != "ValidatingWebhookConfiguration" && kind.Kind != "MutatingWebhookConfiguration" {
		return false
	}
	webhooks, _ := field(configuration, "webhooks").([]any)
	return slices.ContainsFunc(webhooks, func(w any) bool {
		webhook, _ := w.(map[string]any)
		rules, _ := webhook["rules"].([]any)
		return webhook["failurePolicy"] != "Ignore" && !picks(webhook) && slices.ContainsFunc(rules, coversRecords)
	})
}

// picks reports whether a webhook is not asked about everything that its rules name.
func picks(webhook map[string]any) bool {
	for _, name := range []string{"namespaceSelector", "objectSelector"} {
		if selector, _ := webhook[name].(map[string]any); len(selector) > 0 {
			return true
		}
	}
	conditions, _ := webhook["matchConditions"].([]any)
	return len(conditions) > 0
}

func coversRecords(r any) bool {
	rule, _ := r.(map[string]any)
	has := func(name string, words ...string) bool {
		list, _ := rule[name].([]any)
		return slices.ContainsFunc(list, func(v any) bool { s, _ := v.(string); return slices.Contains(words, s) })
	}
	return has("operations", "*", "CREATE", "UPDATE") && slices.ContainsFunc(records, func(r schema.GroupResource) bool {
		every := []string{"*/*", r.Resource}
		if r.Resource != "transactions/status" {
			every = append(every, "*")
		} else {
			every = append(every, "transactions/*", "*/status")
		}
		return has("apiGroups", "*", r.Group) && has("resources", every...)
	})
}
