package plan

import api "janus.io/janus/api/v1alpha1"

// SourcesChanged returns of each change whose content is in an object that another change of the
// Transaction may change first, such another change; of any other -1.
func SourcesChanged(t *api.Transaction) []int {
	out := make([]int, len(t.Spec.Changes))
	changed := map[api.Target][]int{}
	for j := range t.Spec.Changes {
		out[j] = -1
		if t.Spec.Changes[j].Type != api.Await {
			target := inNamespace(t.Spec.Changes[j].Target, t.Namespace)
			changed[target] = append(changed[target], j)
		}
	}
	var schedule *Schedule
	for i := range t.Spec.Changes {
		from := t.Spec.Changes[i].ContentFrom
		if from == nil {
			continue
		}
		for _, j := range changed[sourceOf(from, t.Namespace)] {
			if schedule == nil {
				s := ScheduleOf(t)
				schedule = &s
			}
			if skipped := t.Status.Items[j].State == api.ItemSkipped; j != i && !skipped && !schedule.after(j, i) {
				out[i] = j
				break
			}
		}
	}
	return out
}

// sourceOf is the object that holds a content, as inNamespace has it.
func sourceOf(from *api.ContentSource, namespace string) api.Target {
	kind := "ConfigMap"
	if from.Confidential() {
		kind = "Secret"
	}
	return api.Target{APIVersion: "v1", Kind: kind, Name: from.Ref().Name, Namespace: namespace}.Identity()
}
