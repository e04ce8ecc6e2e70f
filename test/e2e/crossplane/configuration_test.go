package crossplane

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/testcluster"
)

// composite defines a kind of composite resources. The composition is of another kind: nothing
// runs in the Pod of the function, so no Shop could be composed by it, nor be deleted in time.
const (
	composite = `
apiVersion: apiextensions.crossplane.io/v2
kind: CompositeResourceDefinition
metadata: {name: shops.acme.io}
spec:
  group: acme.io
  scope: Cluster
  names: {kind: Shop, plural: shops}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}%s}}
`
	composition = `
apiVersion: apiextensions.crossplane.io/v1
kind: Composition
metadata: {name: malls}
spec:
  compositeTypeRef: {apiVersion: acme.io/v1, kind: Mall}
  mode: Pipeline
  pipeline:
  - {step: one, functionRef: {name: acme-function}}
`
)

func (w *world) pushConfiguration(tag, more, composition string, needs ...string) {
	w.t.Helper()
	w.registry.Push("acme/platform:"+tag, crossplane.Stream("Configuration", "platform", needs, fmt.Sprintf(composite, more), composition))
}

// A Configuration comes with the providers and functions that it needs, and goes as it came.
func TestAConfigurationComesWithAllThatItNeeds(t *testing.T) {
	w := newWorld(t)
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.registry.Push("acme/function:v1.0.0", crossplane.Stream("Function", "function", nil))
	needs := []string{crossplane.Needs(w.source("bucket"), ">=v1.0.0"), fmt.Sprintf("{function: %q, version: %q}", w.source("function"), ">=v1.0.0")}
	w.pushConfiguration("v1.0.0", "", composition, needs...)
	made := w.committed("install %s:v1.0.0", w.source("platform"))
	assert.True(t, w.healthy("acme-platform") && w.healthy("acme-bucket") && w.healthy("acme-function"))
	assert.NotNil(t, w.Object("apiextensions.crossplane.io/v1 Composition/malls"))
	w.Served("acme.io/v1 Shop")
	w.Apply("apiVersion: acme.io/v1\nkind: Shop\nmetadata: {name: mine}\nspec: {size: 3}\n")
	before := w.Object("acme.io/v1 Shop/mine")

	// A composite resource is data as any other.
	said := w.refused(2, "kubectl janus package plan delete acme-platform --service-account installer")
	assert.Contains(t, said, "error: DataLoss: shops.acme.io goes with "+w.source("platform")+": delete its 1 custom resource first: mine")
	out, err := w.shell.Run(t.Context(), "kubectl janus undo "+made.Name+" --wait --timeout 2m")
	require.Error(t, err, out)
	after := w.Object("acme.io/v1 Shop/mine")
	require.NotNil(t, after, "the undo of the installation has deleted a composite resource:\n%s", out)
	assert.Equal(t, before.GetUID(), after.GetUID())

	w.pushConfiguration("v1.1.0", ", color: {type: string}", composition, needs...)
	w.committed("install %s:v1.1.0", w.source("platform"))
	assert.Contains(t, w.types("kubectl get crd shops.acme.io -o yaml"), "color")
	after = w.Object("acme.io/v1 Shop/mine")
	require.NotNil(t, after)
	assert.Equal(t, before.GetUID(), after.GetUID())

	w.types("kubectl delete shop.acme.io mine")
	// A composition that is not of a package names the function, as that of the package does.
	w.Apply(strings.Replace(composition, "name: malls", "name: by-hand", 1))
	said = w.refused(2, "kubectl janus package plan delete acme-platform acme-bucket acme-function --service-account installer")
	assert.Contains(t, said, "error: HasDependents: Function acme-function would stop, and runs in Composition by-hand: change or delete that first")
	w.types("kubectl delete composition by-hand")
	w.committed("delete acme-platform acme-bucket acme-function")
	assert.Contains(t, w.types("kubectl janus package list"), "There are no packages.")
	w.until("the definitions are gone", func() bool {
		return w.Object("apiextensions.k8s.io/v1 CustomResourceDefinition/shops.acme.io") == nil &&
			w.Object("apiextensions.k8s.io/v1 CustomResourceDefinition/buckets.acme.io") == nil
	})
}

// claimed defines a kind of composite resources whose claims are of another kind, in a namespace
// each. It has no scope.
const claimed = `
apiVersion: apiextensions.crossplane.io/v1
kind: CompositeResourceDefinition
metadata: {name: xstalls.acme.io}
spec:
  group: acme.io
  names: {kind: XStall, plural: xstalls}
  claimNames: {kind: Stall, plural: stalls}
  versions:
  - name: v1
    served: true
    referenceable: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {size: {type: integer}%s}}
`

// A claim that is paused has no composite resource, and is data all the same.
func TestAClaimIsNotDeletedWithItsKind(t *testing.T) {
	w := newWorld(t)
	// By default the scope of the one is another in its version of the API than that of the other.
	unscoped := strings.Replace(fmt.Sprintf(composite, ""), "  scope: Cluster\n", "", 1)
	push := func(tag, claimed string) {
		w.registry.Push("acme/market:"+tag, crossplane.Stream("Configuration", "market", nil, claimed, unscoped))
	}
	push("v1.0.0", fmt.Sprintf(claimed, ""))
	made := w.committed("install %s:v1.0.0", w.source("market"))
	w.Served("acme.io/v1 Stall")
	w.Apply("apiVersion: acme.io/v1\nkind: Stall\nmetadata: {name: mine, annotations: {crossplane.io/paused: \"true\"}}\nspec: {size: 3}\n")
	before := w.Object("acme.io/v1 Stall/mine")
	require.NotNil(t, before)
	require.Contains(t, w.types("kubectl get xstalls.acme.io"), "No resources found", "the claim has no composite resource")
	stays := func() {
		t.Helper()
		after := w.Object("acme.io/v1 Stall/mine")
		require.NotNil(t, after, "the claim is gone")
		require.Equal(t, before.GetUID(), after.GetUID())
	}

	said := w.refused(2, "kubectl janus package plan delete acme-market --service-account installer")
	assert.Contains(t, said, "error: DataLoss: xstalls.acme.io goes with "+w.source("market")+": delete its 1 custom resource first: Stall "+w.Namespace+"/mine")
	out, err := w.shell.Run(t.Context(), "kubectl janus undo "+made.Name+" --wait --timeout 2m")
	require.Error(t, err, out)
	stays()

	push("v1.1.0", fmt.Sprintf(claimed, ", color: {type: string}"))
	w.committed("install %s:v1.1.0", w.source("market"))
	stays()
	push("v1.2.0", strings.Replace(fmt.Sprintf(claimed, ", color: {type: string}"), "  claimNames: {kind: Stall, plural: stalls}\n", "", 1))
	said = w.refused(2, "kubectl janus package plan install %s:v1.2.0 --service-account installer --crossplane-version "+testcluster.CrossplaneVersion, w.source("market"))
	assert.Contains(t, said, "changes xstalls.acme.io: the claims are gone, and were stalls.acme.io")

	w.types("kubectl delete stall.acme.io mine -n %s", w.Namespace)
	w.committed("delete acme-market")
	assert.Contains(t, w.types("kubectl janus package list"), "There are no packages.")
}

// The definition of what a composition composes may be of another package, and stay.
func TestACompositionStaysWhileItComposes(t *testing.T) {
	w := newWorld(t)
	w.registry.Push("acme/function:v1.0.0", crossplane.Stream("Function", "function", nil))
	w.registry.Push("acme/api:v1.0.0", crossplane.Stream("Configuration", "api", nil, fmt.Sprintf(composite, "")))
	w.registry.Push("acme/composition:v1.0.0", crossplane.Stream("Configuration", "composition", nil, strings.Replace(composition, "kind: Mall}", "kind: Shop}", 1)))
	for _, name := range []string{"function", "api", "composition"} {
		w.committed("install %s:v1.0.0", w.source(name))
	}
	w.Served("acme.io/v1 Shop")
	w.Apply("apiVersion: acme.io/v1\nkind: Shop\nmetadata: {name: mine}\nspec: {size: 3}\n")
	w.until("Crossplane has given it the composition", func() bool {
		return strings.Contains(w.types("kubectl get shop.acme.io mine -o yaml"), "name: malls")
	})

	said := w.refused(2, "kubectl janus package plan delete acme-composition --service-account installer")
	assert.Contains(t, said, "error: HasDependents: Composition malls goes with "+w.source("composition")+", and composes Shop mine: give each another composition first")
	// Nothing runs in the Pod of the function, so Crossplane does not let it go for a minute or two.
	w.types(`kubectl delete shop.acme.io mine --wait=false && kubectl patch shop.acme.io mine --type=merge -p '{"metadata":{"finalizers":null}}'`)
	w.committed("delete acme-composition")
	w.until("the composition is gone", func() bool { return w.Object("apiextensions.crossplane.io/v1 Composition/malls") == nil })
	w.committed("delete acme-api acme-function")
}

// Crossplane calls a Configuration healthy that has claims of a kind of another package: it never
// offers them.
func TestClaimsOfAKindOfAnotherPackageAreRefused(t *testing.T) {
	w := newWorld(t)
	w.push("bucket", "v1.0.0", "Bucket", size)
	w.committed("install %s:v1.0.0", w.source("bucket"))
	w.registry.Push("acme/market:v1.0.0", crossplane.Stream("Configuration", "market", nil,
		strings.Replace(fmt.Sprintf(claimed, ""), "claimNames: {kind: Stall, plural: stalls}", "claimNames: {kind: Bucket, plural: buckets}", 1)))
	said := w.refused(2, "kubectl janus package plan install %s:v1.0.0 --service-account installer --crossplane-version "+testcluster.CrossplaneVersion, w.source("market"))
	assert.Contains(t, said, "error: CRDConflict: CustomResourceDefinition buckets.acme.io is controlled by Provider acme-bucket: "+w.source("market")+" v1.0.0 cannot control it too")

	w.Apply("{apiVersion: pkg.crossplane.io/v1, kind: Configuration, metadata: {name: acme-market}, spec: {package: \"" + w.source("market") + ":v1.0.0\"}}")
	w.until("Crossplane calls it healthy", func() bool {
		out, err := w.shell.Run(t.Context(), "kubectl wait configuration/acme-market --for=condition=Healthy --timeout=1s")
		return err == nil && strings.Contains(out, "condition met")
	})
	w.until("Crossplane says why it does not offer the claims", func() bool {
		return strings.Contains(w.types("kubectl get events -A --field-selector=involvedObject.name=xstalls.acme.io"), "not controlled by")
	})
}

// Crossplane takes over a definition that nobody controls, and gives it a schema of its own.
func TestADefinitionWithCustomResourcesIsNotTakenOver(t *testing.T) {
	w := newWorld(t)
	w.Apply(crossplane.Definition("Stall", size))
	w.Served("acme.io/v1 Stall")
	w.Apply("apiVersion: acme.io/v1\nkind: Stall\nmetadata: {name: mine}\nspec: {size: 3}\n")
	w.registry.Push("acme/market:v1.0.0", crossplane.Stream("Configuration", "market", nil, fmt.Sprintf(claimed, "")))
	said := w.refused(2, "kubectl janus package plan install %s:v1.0.0 --service-account installer --crossplane-version "+testcluster.CrossplaneVersion, w.source("market"))
	assert.Contains(t, said, "changes xstalls.acme.io: the definition stalls.acme.io, with 1 custom resource, gets another schema (--allow-schema-narrowing lets it pass)")
	w.types("kubectl delete stall.acme.io mine")
	w.types("kubectl delete crd stalls.acme.io")
	w.committed("install %s:v1.0.0", w.source("market"))
}
