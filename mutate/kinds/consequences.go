package kinds

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Consequence is what a controller deletes, or ends, because of a new value of a field. For good
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
	was, is := ordinalsOf(before), ordinalsOf(after)
	text := fmt.Sprintf("scaled from %d to %d, it deletes", was.end-was.first, is.end-is.first)
	if is.first != was.first {
		text = fmt.Sprintf("its Pods have the ordinals from %d instead of %d, and it deletes", is.first, was.first)
	}
	return append(fewerRevisions(before, after), Consequence{
		Text:    text + " the PersistentVolumeClaims of the Pods that go (spec.persistentVolumeClaimRetentionPolicy)",
		ForGood: true,
	}.where(was.reaches(is) && whenScaled(after) == "Delete")...)
}

// Scaling is the step of a StatefulSet from one state to another.
type Scaling struct {
	// claims are what the names of its claims begin with.
	claims   []string
	was, is  ordinals
	retained bool
	// pods is up to where there may be Pods.
	pods int64
}

// ScalingOf returns the step from before to after; false if it has no claim deleted.
func ScalingOf(before, after map[string]any) (Scaling, bool) {
	s := Scaling{was: ordinalsOf(before), is: ordinalsOf(after), retained: whenScaled(before) != "Delete"}
	s.pods = s.was.first + number(before, 0, "status", "replicas")
	name, _, _ := unstructured.NestedString(before, "metadata", "name")
	templates, _, _ := unstructured.NestedSlice(before, "spec", "volumeClaimTemplates")
	for _, t := range templates {
		template, _ := t.(map[string]any)
		claim, _, _ := unstructured.NestedString(template, "metadata", "name")
		s.claims = append(s.claims, claim+"-"+name+"-")
	}
	return s, whenScaled(after) == "Delete" && (s.was.reaches(s.is) || s.retained && s.pods > s.is.end)
}

// Goes reports whether a claim is that of a Pod that goes.
func (s Scaling) Goes(claim string) bool {
	n, ok := s.ordinal(claim)
	return ok && s.was.has(n) && !s.is.has(n)
}

// Leaving reports whether a claim, retained so far, may be that of a Pod that is on its way out.
func (s Scaling) Leaving(claim string) bool {
	n, ok := s.ordinal(claim)
	return ok && s.retained && n >= s.was.end && n < s.pods && !s.is.has(n)
}

func (s Scaling) ordinal(claim string) (int64, bool) {
	for _, prefix := range s.claims {
		if rest, ok := strings.CutPrefix(claim, prefix); ok {
			n, err := strconv.ParseInt(rest, 10, 32)
			return n, err == nil
		}
	}
	return 0, false
}

// ordinals are those of Pods, from the first one up to the end.
type ordinals struct{ first, end int64 }

func ordinalsOf(set map[string]any) ordinals {
	first := number(set, 0, "spec", "ordinals", "start")
	return ordinals{first, first + number(set, 1, "spec", "replicas")}
}

func (o ordinals) has(n int64) bool { return n >= o.first && n < o.end }

// reaches reports whether some are not among others.
func (o ordinals) reaches(others ordinals) bool {
	return o.first < o.end && (o.first < others.first || o.end > others.end)
}

func whenScaled(set map[string]any) string {
	when, _, _ := unstructured.NestedString(set, "spec", "persistentVolumeClaimRetentionPolicy", "whenScaled")
	return when
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

// FailedJob is of a Job that runs, which fails once it has run for too long, or failed too often: it never
// runs again then.
func FailedJob(before, after map[string]any, now time.Time) []Consequence {
	if finished(before) {
		return nil
	}
	deadline, set, _ := unstructured.NestedInt64(after, "spec", "activeDeadlineSeconds")
	was, had, _ := unstructured.NestedInt64(before, "spec", "activeDeadlineSeconds")
	out := Consequence{
		Text:    fmt.Sprintf("it fails for good once it has run for %d seconds (spec.activeDeadlineSeconds)", deadline),
		ForGood: ranFor(before, now) >= time.Duration(deadline)*time.Second,
	}.where(set && (!had || deadline < was))
	usual, limit, failures := number(before, 6, "spec", "backoffLimit"), number(after, 6, "spec", "backoffLimit"), number(before, 0, "status", "failed")
	return append(out, Consequence{
		Text:    fmt.Sprintf("it fails for good: %d of its Pods have failed, and spec.backoffLimit goes from %d to %d", failures, usual, limit),
		ForGood: true,
	}.where(limit < failures && failures <= usual)...)
}

// ranFor is for how long a Job has been running; zero if it is not.
func ranFor(job map[string]any, now time.Time) time.Duration {
	suspended, _, _ := unstructured.NestedBool(job, "spec", "suspend")
	text, _, _ := unstructured.NestedString(job, "status", "startTime")
	began, err := time.Parse(time.RFC3339, text)
	if suspended || err != nil {
		return 0
	}
	return now.Sub(began)
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

// givenBack is of a Service, which gives back what it has outside of its spec, or what others may take.
func givenBack(before, after map[string]any) []Consequence {
	was, is := serviceType(before), serviceType(after)
	out := Consequence{Text: "no longer of the type LoadBalancer, its load balancer is deleted, and its address may be another after a rollback"}.
		where(was == corev1.ServiceTypeLoadBalancer && is != was)
	return append(out, Consequence{Text: "of the type ExternalName, it gives its cluster IP back, and a rollback fails while another Service has that"}.
		where(hasClusterIP(before) && is == corev1.ServiceTypeExternalName)...)
}

func serviceType(service map[string]any) corev1.ServiceType {
	of, _, _ := unstructured.NestedString(service, "spec", "type")
	return corev1.ServiceType(of)
}

func hasClusterIP(service map[string]any) bool {
	ip, _, _ := unstructured.NestedString(service, "spec", "clusterIP")
	return ip != "" && ip != corev1.ClusterIPNone
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
