package mutate

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// consequence is what a controller deletes because of a new value of a field. For good
// means that it holds data, or is the target itself: no old value brings it back.
type consequence struct {
	text    string
	forGood bool
}

// consequences are the fields by which controllers of Kubernetes delete something, by kind.
var consequences = map[schema.GroupKind]func(before, after map[string]any) []consequence{
	{Group: "apps", Kind: "StatefulSet"}: func(before, after map[string]any) []consequence {
		was, is := number(before, 1, "spec", "replicas"), number(after, 1, "spec", "replicas")
		when, _, _ := unstructured.NestedString(after, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
		return append(fewerRevisions(before, after), consequence{
			text:    fmt.Sprintf("scaled from %d to %d, it deletes the PersistentVolumeClaims of the Pods that go (spec.persistentVolumeClaimRetentionPolicy)", was, is),
			forGood: true,
		}.where(is < was && when == "Delete")...)
	},
	{Group: "apps", Kind: "Deployment"}: fewerRevisions,
	{Group: "apps", Kind: "DaemonSet"}:  fewerRevisions,
	{Group: "batch", Kind: "Job"}: func(before, after map[string]any) []consequence {
		ttl, set, _ := unstructured.NestedInt64(after, "spec", "ttlSecondsAfterFinished")
		was, had, _ := unstructured.NestedInt64(before, "spec", "ttlSecondsAfterFinished")
		text := fmt.Sprintf("it is deleted with its Pods %d seconds after it has finished (spec.ttlSecondsAfterFinished)", ttl)
		out := consequence{text: text, forGood: finished(before)}.where(set && (!had || ttl < was))
		suspends, _, _ := unstructured.NestedBool(after, "spec", "suspend")
		ran, _, _ := unstructured.NestedBool(before, "spec", "suspend")
		return append(out, consequence{text: "suspended, it deletes its running Pods, which start over after a rollback"}.where(suspends && !ran && !finished(before))...)
	},
	{Group: "batch", Kind: "CronJob"}: func(before, after map[string]any) []consequence {
		var out []consequence
		for field, usual := range map[string]int64{"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1} {
			was, is := number(before, usual, "spec", field), number(after, usual, "spec", field)
			out = append(out, consequence{text: fmt.Sprintf("it deletes Jobs that have finished, with their Pods: spec.%s goes from %d to %d", field, was, is)}.where(is < was)...)
		}
		return out
	},
	volumeKind: func(before, after map[string]any) []consequence {
		policy, _, _ := unstructured.NestedString(after, "spec", "persistentVolumeReclaimPolicy")
		was, _, _ := unstructured.NestedString(before, "spec", "persistentVolumeReclaimPolicy")
		phase, _, _ := unstructured.NestedString(before, "status", "phase")
		return consequence{text: "it is Released, and its data is deleted at once with the reclaim policy " + policy, forGood: true}.
			where(was == retain && policy != retain && phase == string(corev1.VolumeReleased))
	},
	{Kind: "Node"}: func(before, after map[string]any) []consequence {
		added := evicting(after)
		for taint := range evicting(before) {
			delete(added, taint)
		}
		return consequence{text: "its Pods that do not tolerate a new taint with the effect NoExecute are evicted, and start over elsewhere"}.where(len(added) > 0)
	},
}

func (c consequence) where(so bool) []consequence {
	if !so {
		return nil
	}
	return []consequence{c}
}

// fewerRevisions is of workloads that keep their history.
func fewerRevisions(before, after map[string]any) []consequence {
	was, is := number(before, 10, "spec", "revisionHistoryLimit"), number(after, 10, "spec", "revisionHistoryLimit")
	return consequence{text: fmt.Sprintf("it deletes old revisions, to which it cannot be rolled back then: spec.revisionHistoryLimit goes from %d to %d", was, is)}.where(is < was)
}

func number(object map[string]any, usual int64, path ...string) int64 {
	if n, ok, _ := unstructured.NestedInt64(object, path...); ok {
		return n
	}
	return usual
}

func finished(job map[string]any) bool {
	list, _, _ := unstructured.NestedSlice(job, "status", "conditions")
	for _, entry := range list {
		condition, _ := entry.(map[string]any)
		if (condition["type"] == "Complete" || condition["type"] == "Failed") && condition["status"] == "True" {
			return true
		}
	}
	return false
}

// evicting are the taints of a Node that drive Pods away.
func evicting(node map[string]any) map[string]bool {
	out := map[string]bool{}
	list, _, _ := unstructured.NestedSlice(node, "spec", "taints")
	for _, entry := range list {
		if taint, _ := entry.(map[string]any); taint["effect"] == string(corev1.TaintEffectNoExecute) {
			out[fmt.Sprint(taint["key"], "=", taint["value"])] = true
		}
	}
	return out
}

// deletes says what controllers delete because of a change, for good and otherwise.
func (c Change) deletes(before, after *unstructured.Unstructured) (forGood string, warnings []string) {
	look := consequences[c.Ref.GVK.GroupKind()]
	if look == nil || before == nil || after == nil {
		return "", nil
	}
	var all []string
	for _, found := range look(before.Object, after.Object) {
		if found.forGood {
			all = append(all, found.text)
		} else {
			warnings = append(warnings, c.warn(found.text)...)
		}
	}
	return strings.Join(all, "; "), warnings
}
