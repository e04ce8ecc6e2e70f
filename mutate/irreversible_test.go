package mutate_test

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// accepted plans a Delete that is refused, and allows it.
func (e *env) accepted(text, lost string) *item {
	e.t.Helper()
	i := e.plan(0, api.Delete, text)
	fails(e.t, i.tryPrepare(), errclass.Terminal, errclass.Irreversible, lost, "acceptLoss: true")
	i.change.Options.AcceptLoss = true
	require.NoError(e.t, i.tryPrepare())
	i.warned("cannot undo its deletion", lost)
	return i
}

// warned asserts that one of the warnings names the target and has the words.
func (i *item) warned(words ...string) {
	i.t.Helper()
	for _, w := range i.warnings {
		all := strings.HasPrefix(w, i.change.Ref.String()+": ")
		for _, word := range words {
			all = all && strings.Contains(w, word)
		}
		if all {
			return
		}
	}
	assert.Fail(i.t, "no such warning", "%q has none with %q", i.warnings, words)
}

func TestK6NamespaceIsRecreatedEmptyWhereTheLossIsAccepted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	name := e.namespace + "-other"
	namespace := "{apiVersion: v1, kind: Namespace, metadata: {name: " + name + ", labels: {team: blue}}}"
	e.create(namespace)
	_, err := e.Kube.CoreV1().ConfigMaps(name).Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "inside"}}, metav1.CreateOptions{})
	require.NoError(t, err)
	i := e.accepted(namespace, "everything in it would be lost")
	i.landed()
	i.undone()
	i.restored()
	assert.Equal(t, []string{"re-created empty: what was in it is lost"}, i.report.Notes)
	_, err = e.Kube.CoreV1().ConfigMaps(name).Get(t.Context(), "inside", metav1.GetOptions{})
	assert.True(t, errclass.Is(err, errclass.NotFound), "%v", err)
	i.undone()
	assert.Equal(t, []string{"re-created empty: what was in it is lost"}, i.report.Notes)
}

func TestK6CRDIsRecreatedWithoutItsObjectsWhereTheLossIsAccepted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	crd := e.crd("Gizmo", "gizmos")
	e.create("{apiVersion: example.com/v1, kind: Gizmo, metadata: {name: g}}")
	i := e.accepted("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gizmos.example.com}}", "every object of its kind would be lost")
	i.landed()
	i.undone()
	e.within("it is restored", func() bool { return e.live(crd) != nil })
	assert.Equal(t, []string{"re-created: the objects of its kind are lost"}, i.report.Notes)
	e.served("Gizmo", "v1")
	assert.Nil(t, e.live(parse(t, "{apiVersion: example.com/v1, kind: Gizmo, metadata: {name: g}}")))
	i.restored()
}

const job = `
apiVersion: batch/v1
kind: Job
metadata: {name: j}
spec:
  suspend: true
  template:
    spec:
      restartPolicy: Never
      containers: [{name: a, image: example.com/a}]
`

func TestK7JobIsRecreatedWithoutTheMarksOfTheOldOneWhereTheLossIsAccepted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	before := e.create(job)
	i := e.accepted(job, "it would run again")
	i.landed()
	i.undone()
	assert.Equal(t, []string{"re-created: it runs again from the start"}, i.report.Notes)
	now := i.now()
	assert.NotEqual(t, before.GetUID(), now.GetUID())
	assert.Equal(t, string(now.GetUID()), value(t, now, "spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid"))
	assert.Equal(t, entries(before), entries(now))
	i.undone()
}

func TestNodeIsRecreatedWhereTheLossIsAccepted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	node := "{apiVersion: v1, kind: Node, metadata: {name: " + e.namespace + ", labels: {a: b}}}"
	obj := e.create(node)
	t.Cleanup(func() { _ = e.resource(obj).Delete(context.Background(), obj.GetName(), metav1.DeleteOptions{}) })
	i := e.accepted(node, "registers itself again")
	i.landed()
	i.undone()
	i.restored()
}

func TestCertificateSigningRequestIsRecreatedWhereTheLossIsAccepted(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	_, key, err := ed25519.GenerateKey(rand.Reader)
	require.NoError(t, err)
	request, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: "somebody"}}, key)
	require.NoError(t, err)
	encoded := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: request}))
	text := "{apiVersion: certificates.k8s.io/v1, kind: CertificateSigningRequest, metadata: {name: " + e.namespace + "}, spec: {request: " + encoded + ", signerName: example.com/signer, usages: [client auth]}}"
	obj := e.create(text)
	t.Cleanup(func() { _ = e.resource(obj).Delete(context.Background(), obj.GetName(), metav1.DeleteOptions{}) })
	i := e.accepted(text, "its certificate would be lost")
	i.landed()
	i.undone()
	i.restored()
	assert.Equal(t, []string{"re-created: its approval and its certificate are lost"}, i.report.Notes)
}

const robotsOwn = "{apiVersion: v1, kind: Secret, metadata: {name: robot-token, annotations: {kubernetes.io/service-account.name: robot}}, type: kubernetes.io/service-account-token}"

const robot = "{apiVersion: v1, kind: ServiceAccount, metadata: {name: robot}}"

// token makes a ServiceAccount with a Secret that has its token.
func (e *env) token() {
	e.t.Helper()
	e.create(robot)
	secret := e.create(robotsOwn)
	e.within("it has a token", func() bool {
		data, ok := e.live(secret).Object["data"].(map[string]any)
		return ok && data["token"] != nil
	})
}

func TestServiceAccountWithTokenSecretsIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(robot)
	free := e.plan(0, api.Delete, robot)
	require.NoError(t, free.tryPrepare())
	free.warned("tokens issued to it")
	e.remove(free.object)
	e.token()
	e.accepted(robot, "token Secret robot-token")
	// Who may not list Secrets is told that it is not known.
	i := e.plan(0, api.Delete, robot).by(e.deployer(rule("", "serviceaccounts", "get", "delete", "create", "patch")))
	require.NoError(t, i.tryPrepare())
	i.warned("cannot be told", "may not list secrets")
	i.done()
	i.undone()
	i.restored()
	assert.Equal(t, []string{"tokens issued to it before are invalid"}, i.report.Notes)
}

func TestDefaultServiceAccountIsRefused(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.accepted("{apiVersion: v1, kind: ServiceAccount, metadata: {name: default}}", "re-creates it at once")
}

func TestK8TokenSecretIsWarnedAboutAndNotMadeForAnotherServiceAccount(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.token()
	i := e.plan(0, api.Delete, robotsOwn)
	require.NoError(t, i.tryPrepare())
	i.warned("if its ServiceAccount was re-created")
	i.done()
	i.undone()
	i.restored()
	i = e.prepare(0, api.Delete, robotsOwn).done()
	e.remove(parse(t, robot))
	fails(t, i.undo(), errclass.Terminal, errclass.OwnerGone, "robot", "would delete the Secret at once")
	e.create(robot)
	fails(t, i.undo(), errclass.Terminal, errclass.OwnerGone, "robot", "would delete the Secret at once")
	assert.Nil(t, i.now())
}

func TestDeleteWarnsAboutWhatIsHardToRollBack(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.create(ownerMap)
	e.child("owner")
	e.merge("test", parse(t, settings), `{"metadata":{"finalizers":["example.com/held"]}}`)
	i := e.plan(0, api.Delete, settings)
	i.change.Options.Last, i.change.Options.Tail = yes, yes
	require.NoError(t, i.tryPrepare())
	i.warned("finalizers example.com/held")
	i.warned("owned by ConfigMap owner")
	assert.Len(t, i.warnings, 2, "%q", i.warnings)
	i.change.Options.Last, i.change.Options.Tail = nil, nil
	require.NoError(t, i.tryPrepare())
	i.warned("last is best")
	i.change.Options.Propagation = metav1.DeletePropagationOrphan
	require.NoError(t, i.tryPrepare())
	i.warned("what it owns loses its owner reference")
	e.merge("test", i.object, `{"metadata":{"finalizers":null}}`)

	e.create("{apiVersion: v1, kind: Service, metadata: {name: lb}, spec: {type: LoadBalancer, ports: [{port: 80, protocol: TCP}]}}")
	i = e.prepare(0, api.Delete, "{apiVersion: v1, kind: Service, metadata: {name: lb}}")
	i.warned("address at the load balancer")
	e.create("{apiVersion: v1, kind: Pod, metadata: {name: p}, spec: {containers: [{name: a, image: example.com/a}]}}")
	e.prepare(0, api.Delete, "{apiVersion: v1, kind: Pod, metadata: {name: p}}").warned("starts a new Pod")

	e.create(deployment)
	i = e.plan(0, api.Delete, deployment)
	i.change.Options.Last, i.change.Options.Tail = yes, yes
	for _, policy := range []metav1.DeletionPropagation{"", metav1.DeletePropagationBackground, metav1.DeletePropagationForeground} {
		i.change.Options.Propagation = policy
		require.NoError(t, i.tryPrepare())
		i.warned("its Pods go with it", "Orphan would keep them")
	}
	i.change.Options.Propagation = metav1.DeletePropagationOrphan
	require.NoError(t, i.tryPrepare())
	assert.Empty(t, i.warnings)
	e.create("{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}")
	i = e.plan(0, api.Delete, "{apiVersion: v1, kind: ConfigMap, metadata: {name: plain}}")
	i.change.Options.Last, i.change.Options.Tail = yes, yes
	require.NoError(t, i.tryPrepare())
	assert.Empty(t, i.warnings)
}

// The controller of a CronJob adopts no Jobs: those that were orphaned have no owner for good.
func TestOrphaningTheJobsOfACronJobIsWarnedAbout(t *testing.T) {
	t.Parallel()
	const (
		cronJob = "{apiVersion: batch/v1, kind: CronJob, metadata: {name: c}, spec: {schedule: 0 0 1 1 *, suspend: true, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: example.com/a}]}}}}}}"
		ref     = "metadata: {name: j, ownerReferences: [{apiVersion: batch/v1, kind: CronJob, name: c, controller: true, uid: "
	)
	e := newEnv(t)
	owner := e.create(cronJob)
	owned := e.create(strings.Replace(job, "metadata: {name: j", ref+string(owner.GetUID())+"}]", 1))
	i := e.plan(0, api.Delete, cronJob)
	require.NoError(t, i.tryPrepare())
	i.warned("its Pods go with it", "Orphan would keep them")
	i.change.Options.Propagation = metav1.DeletePropagationOrphan
	require.NoError(t, i.tryPrepare())
	i.warned("what it owns loses its owner reference, and a rollback does not put that back")
	i.landed()
	i.undone()
	i.restored()
	now := e.live(owned)
	require.NotNil(t, now)
	assert.Empty(t, now.GetOwnerReferences())
}

func TestStatefulSetThatTakesItsClaimsAlongIsRefused(t *testing.T) {
	t.Parallel()
	const set = "{apiVersion: apps/v1, kind: StatefulSet, metadata: {name: db}, spec: {replicas: 0, persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}, selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: example.com/a}]}}}}"
	e := newEnv(t)
	e.create(set)
	e.accepted(set, "PersistentVolumeClaims would be deleted with it")
	i := e.plan(0, api.Delete, set)
	i.change.Options.Propagation = metav1.DeletePropagationOrphan
	require.NoError(t, i.tryPrepare())
}
