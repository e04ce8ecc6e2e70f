package kinds

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Consequence is what a controller deletes because of a new value of a field. For good
// means that it holds data, or is the target itself: no old value brings it back.
type Consequence struct {
	Text    string
	ForGood bool
}

func (c Consequence) where(so bool) []Consequence {
	if !so {
		return nil
	}
	return []Consequence{c}
}

// scaledAway is of a StatefulSet: its claims may go with the Pods that go.
func scaledAway(before, after map[string]any) []Consequence {
	was, is := number(before, 1, "spec", "replicas"), number(after, 1, "spec", "replicas")
	when, _, _ := unstructured.NestedString(after, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
	return append(fewerRevisions(before, after), Consequence{
		Text:    fmt.Sprintf("scaled from %d to %d, it deletes the PersistentVolumeClaims of the Pods that go (spec.persistentVolumeClaimRetentionPolicy)", was, is),
		ForGood: true,
	}.where(is < was && when == "Delete")...)
}

// finishedJob is of a Job, which may be deleted some time after its end.
func finishedJob(before, after map[string]any) []Consequence {
	ttl, set, _ := unstructured.NestedInt64(after, "spec", "ttlSecondsAfterFinished")
	was, had, _ := unstructured.NestedInt64(before, "spec", "ttlSecondsAfterFinished")
	text := fmt.Sprintf("it is deleted with its Pods %d seconds after it has finished (spec.ttlSecondsAfterFinished)", ttl)
	out := Consequence{Text: text, ForGood: finished(before)}.where(set && (!had || ttl < was))
	suspends, _, _ := unstructured.NestedBool(after, "spec", "suspend")
	ran, _, _ := unstructured.NestedBool(before, "spec", "suspend")
	return append(out, Consequence{Text: "suspended, it deletes its running Pods, which start over after a rollback"}.where(suspends && !ran && !finished(before))...)
}

// fewerJobs is of a CronJob, which keeps so many that have finished.
func fewerJobs(before, after map[string]any) []Consequence {
	var out []Consequence
	for field, usual := range map[string]int64{"successfulJobsHistoryLimit": 3, "failedJobsHistoryLimit": 1} {
		was, is := number(before, usual, "spec", field), number(after, usual, "spec", field)
		out = append(out, Consequence{Text: fmt.Sprintf("it deletes Jobs that have finished, with their Pods: spec.%s goes from %d to %d", field, was, is)}.where(is < was)...)
	}
	return out
}

// reclaimedData is of a PersistentVolume whose claim is gone.
func reclaimedData(before, after map[string]any) []Consequence {
	policy, _, _ := unstructured.NestedString(after, "spec", "persistentVolumeReclaimPolicy")
	was, _, _ := unstructured.NestedString(before, "spec", "persistentVolumeReclaimPolicy")
	phase, _, _ := unstructured.NestedString(before, "status", "phase")
	return Consequence{Text: "it is Released, and its data is deleted at once with the reclaim policy " + policy, ForGood: true}.
		where(was == Retain && policy != Retain && phase == string(corev1.VolumeReleased))
}

// evictedPods is of a Node.
func evictedPods(before, after map[string]any) []Consequence {
	added := evicting(after)
	for taint := range evicting(before) {
		delete(added, taint)
	}
	return Consequence{Text: "its Pods that do not tolerate a new taint with the effect NoExecute are evicted, and start over elsewhere"}.where(len(added) > 0)
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

// fewerRevisions is of workloads that keep their history.
func fewerRevisions(before, after map[string]any) []Consequence {
	was, is := number(before, 10, "spec", "revisionHistoryLimit"), number(after, 10, "spec", "revisionHistoryLimit")
	return Consequence{Text: fmt.Sprintf("it deletes old revisions, to which it cannot be rolled back then: spec.revisionHistoryLimit goes from %d to %d", was, is)}.where(is < was)
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

func number(object map[string]any, usual int64, path ...string) int64 {
	if n, ok, _ := unstructured.NestedInt64(object, path...); ok {
		return n
	}
	return usual
}
