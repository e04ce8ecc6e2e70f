package crossplane

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/registries"
	"janus.io/janus/packages"
	"janus.io/janus/packages/check"
	"janus.io/janus/packages/compile"
	"janus.io/janus/packages/installed"
	"janus.io/janus/test/crossplane"
	"janus.io/janus/test/faultinject"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// bench runs operations again and again, each in a Janus of its own.
type bench struct {
	*world
	janusd  *rest.Config
	schemas *harness.Schemas
	planner packages.Planner
	policy  plan.Policy
	made    int
}

func newBench(w *world) *bench {
	w.t.Helper()
	janusd, err := w.AsJanusd(w.t.Context())
	require.NoError(w.t, err)
	b := &bench{world: w, janusd: janusd, schemas: harness.NewSchemas(w.Kube), policy: harness.FastPolicy}
	b.policy.RevisionHistoryLimit = 10
	// An intent is written off only when anyone who was replaced has noticed it.
	b.policy.SettleTime = plan.DefaultLateness + 300*time.Millisecond
	b.planner = packages.Planner{
		Cluster: w.Dynamic, Crossplane: installed.Crossplane{Version: testcluster.CrossplaneVersion},
		Registries: packages.PullingWithSecrets(w.Dynamic, crossplane.Namespace, registries.DefaultPatience, 1<<20),
	}
	return b
}

// operation is a Transaction that is run once for each fault at each request.
type operation struct {
	name string
	// make makes its Transaction of what there is.
	make func() *api.Transaction
	// phase is how it ends, and works names the providers that work by then.
	phase api.Phase
	works []string
}

// outcome is what came of a run.
type outcome struct {
	txn    *api.Transaction
	calls  []faultinject.Call
	missed bool
	end    seen
	// failures are the promises that were broken.
	failures []string
	log      string
}

// trial is one run of an operation.
type trial struct {
	*bench
	line *faultinject.Line
	log  harness.LogText
}

// varying are the parts of names that are others in each run.
var varying = []struct {
	pattern *regexp.Regexp
	name    string
}{
	{regexp.MustCompile(`^(janus-lock-.*)-[0-9a-z]{10}$`), "$1"},
	{regexp.MustCompile(`-[0-9a-f]{12}\b`), "-DIGEST"},
	{regexp.MustCompile(`^janus-revision-[0-9]+$`), "janus-revision-N"},
	{regexp.MustCompile(`^txn-[0-9]+\b`), "txn"},
}

func (b *bench) names(name string) string {
	name = strings.ReplaceAll(name, b.Namespace, "HERE")
	for _, v := range varying {
		name = v.pattern.ReplaceAllString(name, v.name)
	}
	return name
}

// run runs an operation in which faults happen. What is there at the end is wanted, unless
// that is nil.
func (b *bench) run(op operation, wanted []string, faults ...faultinject.Injection) (out outcome) {
	b.t.Helper()
	before := b.looked(seen{})
	made := op.make()
	b.made++
	made.Name, made.Namespace = b.last(), b.Namespace
	t := &trial{bench: b, line: faultinject.NewLine(faults...)}
	t.line.Names = b.names
	fail := func(format string, args ...any) { out.failures = append(out.failures, fmt.Sprintf(format, args...)) }
	ctx, stop := context.WithCancel(b.t.Context())
	ended := make(chan error, 1)
	go func() { ended <- t.supervise(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			fail("%v", err)
		}
		out.calls, out.missed, out.log = t.line.Calls(), len(t.line.Missed()) > 0, t.log.String()
	}()
	b.submit(made)
	var err error
	if out.txn, err = b.end(made.Name); err != nil {
		fail("%v", err)
		return out
	}
	now := b.looked(before)
	if out.txn.Status.Phase != op.phase {
		fail("it is %s in place of %s", out.txn.Status.Phase, op.phase)
	}
	for _, name := range op.works {
		if !now.works(name) {
			fail("%s does not work when the Transaction has ended: %v", name, now.lines)
		}
	}
	t.line.Settle()
	if out.end, err = b.settled(before, wanted); err != nil {
		fail("%v", err)
	}
	last := b.Await(made.Name, "free of finalizers", func(t *api.Transaction) bool { return len(t.Finalizers) == 0 })
	if last.Status.Phase != out.txn.Status.Phase {
		fail("it is %s after it was %s", last.Status.Phase, out.txn.Status.Phase)
	}
	return out
}

func (b *bench) looked(before seen) seen {
	b.t.Helper()
	now, err := look(b.t.Context(), b.Dynamic, before)
	require.NoError(b.t, err)
	return now
}

// works reports whether a provider and its revision say so.
func (s seen) works(name string) bool {
	provider, revision := false, false
	for _, line := range s.lines {
		provider = provider || strings.HasPrefix(line, "providers/"+name+" ") && strings.Contains(line, " Healthy+Installed ")
		revision = revision || strings.HasPrefix(line, "providerrevisions/"+name+"-") && strings.HasSuffix(line, " RevisionHealthy+RuntimeHealthy")
	}
	return provider && revision
}

// patience is how long Crossplane and the garbage collector may take after the end, and still
// how long nothing happens before that is taken for the end of all.
const (
	patience = 20 * time.Second
	still    = 2 * time.Second
)

// settled waits until all is as wanted. Where that is not known it waits until nothing changes.
func (b *bench) settled(before seen, wanted []string) (now seen, err error) {
	changed := time.Now()
	last := ""
	for begin := time.Now(); ; time.Sleep(100 * time.Millisecond) {
		if now, err = look(b.t.Context(), b.Dynamic, before); err != nil {
			return now, err
		}
		if text := strings.Join(now.lines, "\n"); text != last {
			last, changed = text, time.Now()
		}
		if wanted == nil && time.Since(changed) > still || wanted != nil && last == strings.Join(wanted, "\n") {
			return now, nil
		}
		if time.Since(begin) > patience {
			return now, fmt.Errorf("%s after its end there is not what there should be:%s", patience, difference(wanted, now.lines))
		}
	}
}

// end waits until a Transaction has nothing more to do for ever.
func (b *bench) end(name string) (*api.Transaction, error) {
	const longest = 2 * time.Minute
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		t := b.Transaction(name)
		if t == nil {
			return nil, fmt.Errorf("it is gone")
		}
		if t.Status.Phase.Terminal() && plan.Decide(t, plan.InFlight{}, time.Now(), b.policy).Verb == plan.Nothing {
			return t, nil
		}
		if time.Since(begin) > longest {
			return t, fmt.Errorf("it has not ended in %s", longest)
		}
	}
}

func (b *bench) submit(t *api.Transaction) {
	b.t.Helper()
	t.APIVersion, t.Kind = api.GroupVersion.String(), api.Kind.Kind
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(t)
	require.NoError(b.t, err)
	delete(content, "status")
	_, err = b.Dynamic.Resource(api.Resource).Namespace(b.Namespace).Create(b.t.Context(), &unstructured.Unstructured{Object: content},
		metav1.CreateOptions{FieldManager: harness.Manager, FieldValidation: metav1.FieldValidationStrict})
	require.NoError(b.t, err)
}

// supervise runs Janus, and another one each time it crashes.
func (t *trial) supervise(ctx context.Context) error {
	for {
		p := t.line.Process()
		core := zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewDevelopmentEncoderConfig()), &t.log, zapcore.DebugLevel)
		//nolint:contextcheck // It ends when it is stopped, after the step in flight.
		j, err := harness.Launch(t.janusd, t.Namespace, zap.New(core), harness.WithTransport(p.Wrap), harness.WithPolicy(t.policy),
			harness.WithSchemas(t.schemas), harness.WithWorkers(1))
		if err != nil {
			return fmt.Errorf("start Janus: %w", err)
		}
		select {
		case <-p.Crashed():
			j.Stop()
		case <-ctx.Done():
			j.Stop()
			return nil
		}
	}
}

// compiles plans a change as the plugin does, and compiles it.
// Findings of the given reasons don't stop it.
func (b *bench) compiles(r packages.Request, reasons ...check.Reason) *api.Transaction {
	b.t.Helper()
	found, err := b.planner.Plan(b.t.Context(), r)
	require.NoError(b.t, err)
	require.True(b.t, tolerated(found.Findings, reasons), found.Findings)
	t, err := compile.Transaction(found.Change, compile.Options{
		Namespace: b.Namespace, ServiceAccount: "installer", LockNamespace: crossplane.Namespace, PackageTimeout: "60s", Timeout: "5m",
	})
	require.NoError(b.t, err)
	return t
}
