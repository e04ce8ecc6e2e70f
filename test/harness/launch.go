package harness

import (
	"time"

	"go.uber.org/zap"
	"k8s.io/client-go/kubernetes"
	coordinationv1client "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"

	"janus.io/janus/internal/leasetable"
	"janus.io/janus/internal/openapi"
	"janus.io/janus/internal/target"
	"janus.io/janus/test/testcluster"
)

// Launch runs Janus for the Transactions of a namespace until it is stopped. It is
// Start for those who run many and have no test for each.
func Launch(config *rest.Config, namespace string, log *zap.Logger, options ...Option) (*Janus, error) {
	s := settings{policy: FastPolicy, workers: 4, clock: clock.RealClock{}}
	for _, o := range options {
		o(&s)
	}
	config = rest.CopyConfig(config)
	config.UserAgent = UserAgent
	if s.wrap != nil {
		config.Wrap(s.wrap)
	}
	config.Wrap(target.Transport)
	return run(log, config, namespace, s)
}

// WithWorkers sets how many Transactions are run at once.
func WithWorkers(n int) Option { return func(s *settings) { s.workers = n } }

// WithTrust makes Janus take a ServiceAccount that it has read to exist for so long. In
// tests it is read before each use otherwise.
func WithTrust(d time.Duration) Option { return func(s *settings) { s.trust = d } }

// Schemas is what a Janus has read about the kinds that the cluster serves. Several
// may share it, where what is read is not what is tested.
type Schemas struct {
	resolver *target.Resolver
	types    *openapi.Types
}

// NewSchemas makes Schemas that have read nothing yet.
func NewSchemas(kube kubernetes.Interface) *Schemas {
	discovery := kube.Discovery()
	return &Schemas{
		resolver: target.Discover(discovery),
		types:    openapi.New(discovery.OpenAPIV3(), clock.RealClock{}, zap.NewNop(), openapi.Patience),
	}
}

// WithSchemas makes Janus ask the given Schemas, past any transport of the test.
func WithSchemas(shared *Schemas) Option { return func(s *settings) { s.schemas = shared } }

// leases are those of locks as Janus is to keep them.
func (s settings) leases(kube kubernetes.Interface) coordinationv1client.LeasesGetter {
	if s.tables || testcluster.LocksInTables() {
		return leasetable.New(kube.CoordinationV1(), SystemNamespace)
	}
	return kube.CoordinationV1()
}
