package mutate_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// deletion plans one that comes last.
func (e *env) deletion(text string) *item {
	e.t.Helper()
	i := e.plan(0, api.Delete, text)
	i.change.Options.Last, i.change.Options.Tail = yes, yes
	return i
}

// A kind may have become stricter since the object was made.
func TestADeletionIsRefusedOfWhatIsNotValidAnyMore(t *testing.T) {
	t.Parallel()
	const album = "{apiVersion: example.com/v1, kind: Album, metadata: {name: a}, spec: {size: 7}}"
	e := newEnv(t)
	crd := e.crd("Album", "albums")
	e.create(album)
	i := e.deletion(album)
	require.NoError(t, i.tryPrepare())
	assert.Empty(t, i.warnings)

	e.edit(crd, `[{"op": "replace", "path": "/spec/versions/0/schema/openAPIV3Schema", "value": {"type": "object", "properties": {
		"spec": {"type": "object", "properties": {"size": {"type": "integer", "maximum": 5}}}}}}]`)
	i = e.deletion(album)
	e.within("the kind is stricter", func() bool { return i.tryPrepare() != nil })
	fails(t, i.tryPrepare(), errclass.Terminal, errclass.Irreversible, "it could not be created again as it is", "spec.size", "acceptLoss: true")
	i.change.Options.AcceptLoss = true
	require.NoError(t, i.tryPrepare())
	i.warned("it is not sure that a rollback could create it again", "spec.size")
}

// What is refused because of the name, or because the object is there, proves nothing.
func TestADeletionOfWhatCannotBeRehearsedIsWarnedOf(t *testing.T) {
	t.Parallel()
	const only = "{apiVersion: example.com/v1, kind: Anthem, metadata: {name: only}, spec: {size: 7}}"
	e := newEnv(t)
	crd := e.crd("Anthem", "anthems")
	e.create(only)
	e.edit(crd, `[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations", "value": [{"rule": "self.metadata.name == 'only'", "message": "there can be only one"}]}]`)
	i := e.deletion(only)
	e.within("the rule counts", func() bool {
		require.NoError(t, i.tryPrepare())
		return len(i.warnings) > 0
	})
	i.warned("it is not sure that a rollback could create it again", "there can be only one")

	e.create(settings)
	e.quota()
	i = e.prepare(0, api.Delete, settings)
	i.warned("it is not sure that a rollback could create it again", "exceeded quota")
}

// The address and the ports of a Service are taken as long as it is there.
func TestTheDeletionOfAServiceIsRehearsedWithoutWhatItWasGiven(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for _, spec := range []string{
		"{type: NodePort, ports: [{port: 80}]}", "{clusterIP: None, ports: [{port: 80}]}", "{type: ExternalName, externalName: example.com}",
	} {
		service := "{apiVersion: v1, kind: Service, metadata: {name: web}, spec: " + spec + "}"
		obj := e.create(service)
		i := e.deletion(service)
		require.NoError(t, i.tryPrepare())
		assert.Empty(t, i.warnings, spec)
		e.remove(obj)
	}
}

// A value of a Secret is in no warning.
func TestTheRehearsalOfASecretQuotesNothing(t *testing.T) {
	t.Parallel()
	const holding = "{apiVersion: v1, kind: Secret, metadata: {name: s}, stringData: {key: canary-5d21}}"
	e := newEnv(t)
	e.create(holding)
	e.create("{apiVersion: v1, kind: ResourceQuota, metadata: {name: secrets}, spec: {hard: {count/secrets: 1}}}")
	i := e.deletion(holding)
	e.within("the quota counts", func() bool {
		require.NoError(t, i.tryPrepare())
		return len(i.warnings) > 0
	})
	i.warned("it is not sure that a rollback could create it again", "withheld because it may quote the object")
	assert.NotContains(t, i.warnings[0], "canary")
}
