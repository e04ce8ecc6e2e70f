package simulation

import (
	"context"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/expression"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/test/apisim"
	"janus.io/janus/test/harness"
)

// known is what all machines know of the kinds that are served. It is the same in
// every run, and faults of discovery are tried on the real API server; so it is
// read once, on a clock that stands still.
type known struct {
	resolver *target.Resolver
	types    *openapi.Types
	served   []expression.Kind
}

var schemas = sync.OnceValue(func() known {
	config := &rest.Config{Host: "http://model", QPS: -1, Transport: apisim.New(apisim.Options{CRDs: kinds()})}
	kube, err := kubernetes.NewForConfig(config)
	if err != nil {
		panic(err) // the configuration is a constant
	}
	discovery := kube.Discovery()
	k := known{
		resolver: target.Discover(discovery),
		types:    openapi.New(discovery.OpenAPIV3(), clocktesting.NewFakePassiveClock(time.Unix(0, 0)), zap.NewNop(), 0),
	}
	if k.served, err = harness.Kinds(discovery); err != nil {
		panic(err)
	}
	for _, t := range pool {
		ref, err := k.resolver.Resolve(api.Target{APIVersion: t.target().APIVersion, Kind: t.gvk.Kind, Name: t.name}, namespace, nil)
		if err != nil {
			panic(err)
		}
		if _, err := k.types.Of(context.Background(), ref.GVK); err != nil {
			panic(err)
		}
	}
	return k
})

// ownerless are the objects of whose managedFields neither Janus nor the oracle reads
// anything: what Janus keeps for itself.
func ownerless(resource schema.GroupResource, name string) bool {
	switch resource.Resource {
	case "transactions", "leases", "serviceaccounts":
		return true
	case "configmaps", "secrets":
		return strings.Contains(name, "-rollback")
	default:
		return false
	}
}
