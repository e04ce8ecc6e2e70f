package random

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// The same few cases are run every time: -rapid.checks gives more, -rapid.seed others.
func init() {
	for name, value := range map[string]string{"rapid.seed": "26", "rapid.checks": "60", "rapid.nofailfile": "true", "rapid.shrinktime": "20s"} {
		if f := flag.Lookup(name); f.Value.String() == f.DefValue {
			_ = f.Value.Set(value)
		}
	}
}

// current makes what fails in an Env fail the case at hand, which is then made
// smaller. The log of Janus is left out.
type current struct {
	testing.TB
	now *rapid.T
}

func (c *current) Helper()             {}
func (c *current) Logf(string, ...any) {}

func (c *current) Errorf(format string, args ...any) {
	if c.now == nil {
		c.TB.Errorf(format, args...)
		return
	}
	c.now.Errorf(format, args...)
}

func (c *current) FailNow() {
	if c.now == nil {
		c.TB.FailNow()
		return
	}
	c.now.FailNow()
}

// world is where random cases are run: in one namespace with Janus, and in another
// without.
type world struct {
	*harness.Env
	t     *current
	twin  *harness.Env
	cases int
	now   *run
}

func newWorld(t *testing.T) *world {
	t.Helper()
	crd, err := os.ReadFile(filepath.Join(harness.Root(), "testdata", "crds", "widgets.yaml"))
	require.NoError(t, err)
	w := &world{t: &current{TB: t}}
	w.Env = harness.New(w.t)
	w.Apply(string(crd))
	w.Served("example.com/v1 Widget")
	w.Refuse()
	w.twin = w.In(testcluster.Namespace(t))
	w.Start(harness.Acting(harness.Around{
		Do:   func(_ string, item int) { w.now.beforeDo(item) },
		Undo: func(_ string, item int) { w.now.beforeUndo(item) },
	}))
	return w
}

func TestWhateverTheTransactionItIsMadeWhollyOrNotAtAll(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	phases := map[string]int{}
	rapid.Check(t, func(r *rapid.T) {
		w.t.now = r
		w.cases++
		c := drawCase(r, w.cases)
		r.Logf("case %d\n%s", w.cases, c.describe())
		w.carryOut(c)
		r.Logf("%s", w.now.describeEnd())
		w.now.check(r, w.twin)
		phases[w.now.what()]++
	})
	t.Logf("%d cases: %v", w.cases, phases)
}

// carryOut runs the Transaction of a case, with everybody else.
func (w *world) carryOut(c *randomCase) {
	name := fmt.Sprint("txn-", w.cases)
	w.now = newRun(c, w.Env)
	for _, write := range c.before {
		if _, err := write.in(w.Env, c); err != nil {
			w.t.now.Fatal(err)
		}
	}
	for i := range c.objects {
		w.now.start[i] = w.Object(c.objects[i].ref())
	}
	w.now.txn = w.carry(name, c)
	w.now.mu.Lock()
	defer w.now.mu.Unlock()
	if w.now.failed != nil {
		w.t.now.Fatal(w.now.failed)
	}
}
