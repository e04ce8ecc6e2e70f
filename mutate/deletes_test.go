package mutate_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// What controllers delete because of a new value comes back with no old one.
func TestAChangeByWhichAControllerDeletesSomethingIsSaidBefore(t *testing.T) {
	const (
		set = `{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: x}, spec: {serviceName: x, replicas: 3, revisionHistoryLimit: 5, selector: {matchLabels: {app: x}},
          persistentVolumeClaimRetentionPolicy: {whenScaled: WHEN}, template: {metadata: {labels: {app: x}}, spec: {containers: [{name: a, image: example.com/a}]}}}}`
		job     = `{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a}]}}}}`
		cron    = `{apiVersion: batch/v1, kind: CronJob, metadata: {name: x}, spec: {schedule: "0 0 1 1 *", suspend: true, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a}]}}}}}}`
		service = "{apiVersion: v1, kind: Service, metadata: {name: x}, spec: {type: TYPE, ports: [{port: 80}]}}"
	)
	of := func(kind string) string { return strings.ReplaceAll(service, "TYPE", kind) }
	with := func(old, now string) string { return strings.ReplaceAll(set, old, now) }
	head := func(kind, version, spec string) string {
		return "{apiVersion: " + version + ", kind: " + kind + ", metadata: {name: x}, spec: " + spec + "}"
	}
	for _, row := range []struct {
		name, before, patch, says string
		refused                   bool
	}{
		{"a StatefulSet that deletes claims is scaled down", with("WHEN", "Delete"), head("StatefulSet", "apps/v1", "{replicas: 1}"), "scaled from 3 to 1", true},
		{"it comes to delete claims with the same change", with("WHEN", "Retain"), head("StatefulSet", "apps/v1", "{replicas: 1, persistentVolumeClaimRetentionPolicy: {whenScaled: Delete}}"), "scaled from 3 to 1", true},
		{"a StatefulSet that retains claims is scaled down", with("WHEN", "Retain"), head("StatefulSet", "apps/v1", "{replicas: 1}"), "", false},
		{"a StatefulSet that deletes claims is scaled up", with("WHEN", "Delete"), head("StatefulSet", "apps/v1", "{replicas: 4}"), "", false},
		{"the Pods of a StatefulSet get later ordinals", with("WHEN", "Delete"), head("StatefulSet", "apps/v1", "{ordinals: {start: 1}}"), "ordinals from 1 instead of 0", true},
		{"a StatefulSet keeps fewer revisions", with("WHEN", "Retain"), head("StatefulSet", "apps/v1", "{revisionHistoryLimit: 1}"), "from 5 to 1", false},
		{"a Deployment keeps fewer revisions", deployment, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: ` + parse(t, deployment).GetName() + `}, spec: {revisionHistoryLimit: 0}}`, "from 10 to 0", false},
		{"a Job is suspended", job, head("Job", "batch/v1", "{suspend: true}"), "deletes its running Pods", false},
		{"a Job is deleted when it has finished", job, head("Job", "batch/v1", "{ttlSecondsAfterFinished: 5}"), "5 seconds after it has finished", false},
		{"a Job gets a deadline", job, head("Job", "batch/v1", "{activeDeadlineSeconds: 6000}"), "fails for good once it has run for 6000 seconds", false},
		{"a CronJob keeps fewer Jobs", cron, head("CronJob", "batch/v1", "{successfulJobsHistoryLimit: 0}"), "successfulJobsHistoryLimit goes from 3 to 0", false},
		{"a Service has no load balancer any more", of("LoadBalancer"), head("Service", "v1", "{type: NodePort}"), "its load balancer is deleted", false},
		{"a Service gets a load balancer", of("NodePort"), head("Service", "v1", "{type: LoadBalancer}"), "", false},
		{"a Service gives its cluster IP back", of("ClusterIP"), head("Service", "v1", "{type: ExternalName, externalName: example.com}"), "it gives its cluster IP back", false},
		{"a Service without a cluster IP", strings.ReplaceAll(of("ClusterIP"), "ports:", "clusterIP: None, ports:"), head("Service", "v1", "{type: ExternalName, externalName: example.com}"), "", false},
		{"a CronJob keeps more Jobs", cron, head("CronJob", "batch/v1", "{failedJobsHistoryLimit: 7}"), "", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := newEnv(t)
			e.create(row.before)
			i := e.plan(0, api.Patch, row.patch)
			err := i.tryPrepare()
			if row.refused {
				fails(t, err, errclass.Terminal, errclass.Irreversible, row.says, "acceptLoss: true")
				i.change.Options.AcceptLoss = true
				err = i.tryPrepare()
			}
			require.NoError(t, err)
			if row.says == "" {
				assert.Empty(t, i.warnings)
				return
			}
			i.warned(row.says)
		})
	}
}

// A Released volume is deleted as soon as its policy says so; a Job that has finished is
// deleted at once.
func TestAChangeThatHasTheTargetItselfDeletedIsRefused(t *testing.T) {
	e := newEnv(t)
	volume := e.bound("Retain")
	e.remove(parse(t, claim))
	e.within("it is released", func() bool { return value(t, e.live(volume), "status", "phase") == "Released" })
	i := e.plan(0, api.Patch, "{apiVersion: v1, kind: PersistentVolume, metadata: {name: "+volume.GetName()+"}, spec: {persistentVolumeReclaimPolicy: Delete}}")
	fails(t, i.tryPrepare(), errclass.Terminal, errclass.Irreversible, "Released", "Delete")

	job := e.create(`{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a}]}}}}`)
	now := `"2026-01-01T00:00:00Z"`
	e.merge("kube-controller-manager", job, `{"status":{"startTime":`+now+`,"conditions":[{"type":"FailureTarget","status":"True","lastTransitionTime":`+now+`},{"type":"Failed","status":"True","lastTransitionTime":`+now+`}]}}`, "status")
	i = e.plan(0, api.Patch, "{apiVersion: batch/v1, kind: Job, metadata: {name: x}, spec: {ttlSecondsAfterFinished: 100}}")
	fails(t, i.tryPrepare(), errclass.Terminal, errclass.Irreversible, "100 seconds after it has finished")
}
