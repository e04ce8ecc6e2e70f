package size

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// mostLive is how much memory of janusd may be objects that are in use, whatever the size of a Transaction,
// and most how much it may take: those, 30 % of garbage until the collector runs, a tenth that Go keeps for
// what comes, and 45 MiB of the program and what belongs to it.
const (
	mostLive = 80  // MiB
	most     = 160 // MiB
)

// TestAThousandChangesOf100KBTakeLittleMemory has contents of 100 MB in one Transaction, and as
// much before it.
func TestAThousandChangesOf100KBTakeLittleMemory(t *testing.T) { tried(t, 1000, 100_000) }

// TestAHundredChangesOf1MBTakeLittleMemory has the same in objects as large as can be.
func TestAHundredChangesOf1MBTakeLittleMemory(t *testing.T) { tried(t, 100, 1_000_000) }

// tried takes a Transaction that changes n ConfigMaps of so many bytes through a rollback, a
// commit and an undo.
func tried(t *testing.T, n, bytes int) {
	cluster, err := testcluster.Start(testcluster.Options{ControllerManager: true, CRDs: deployed("crd")})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, cluster.Stop()) })
	s := &stage{Env: harness.On(t, cluster), t: t, n: n, bytes: bytes}
	s.shell = s.Shell()
	plugin := filepath.Join(t.TempDir(), "kubectl-janus")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", plugin, "./cmd/kubectl-janus")
	build.Dir = harness.Root()
	said, err := build.CombinedOutput()
	require.NoError(t, err, "%s", said)
	require.NoError(t, s.shell.Provide("kubectl-janus", plugin))
	s.fill()
	s.start()

	never := map[string]any{"expression": `object.data.text == "never"`, "timeout": "1s"}
	s.run("failing", never)
	s.ends("failing", api.PhaseRolledBack)
	s.have(1)

	s.run("release", nil)
	s.ends("release", api.PhaseCommitted)
	s.have(2)

	s.Submit("undo", "undoOf: {name: release}")
	s.ends("undo", api.PhaseCommitted)
	s.have(1)
}

// stage is a namespace with large ConfigMaps, and a janusd.
type stage struct {
	*harness.Env
	t        *testing.T
	n, bytes int
	shell    *testcluster.Shell
	program  string // janusd, once it is built
	janusd   memory
}

// text is what ConfigMap i has in a version. No compression makes it much smaller.
func (s *stage) text(i, version int) string {
	seed := [32]byte{}
	copy(seed[:], fmt.Sprintf("%d of version %d", i, version))
	random := rand.NewChaCha8(seed)
	data := make([]byte, s.bytes*3/4)
	_, err := random.Read(data)
	require.NoError(s.t, err)
	return base64.StdEncoding.EncodeToString(data)
}

func name(i int) string { return fmt.Sprintf("large-%d", i) }

// fill makes the ConfigMaps, in version 1.
func (s *stage) fill() {
	var group errgroup.Group
	group.SetLimit(4)
	for i := range s.n {
		group.Go(func() error {
			_, err := s.Kube.CoreV1().ConfigMaps(s.Namespace).Create(s.t.Context(), &corev1.ConfigMap{
				ObjectMeta: metav1.ObjectMeta{Name: name(i)}, Data: map[string]string{"text": s.text(i, 1), "kept": "yes"},
			}, metav1.CreateOptions{FieldManager: harness.Manager})
			return err
		})
	}
	require.NoError(s.t, group.Wait())
}

// deployed is a directory of deploy/.
func deployed(name string) string { return filepath.Join(harness.Root(), "deploy", name) }

// start runs janusd as deploy/ has it run, until the test is over.
func (s *stage) start() {
	janusd, stop := s.begin()
	s.t.Cleanup(stop)
	s.janusd = janusd
}

// begin runs janusd as deploy/ has it run, until it is stopped.
func (s *stage) begin() (janusd memory, stop func()) {
	kubeconfig := filepath.Join(s.t.TempDir(), "kubeconfig")
	require.NoError(s.t, s.JanusdKubeconfig(s.t.Context(), kubeconfig))
	if s.program == "" {
		s.program = harness.BuildJanusd(s.t)
	}
	cmd := exec.Command(s.program,
		"--kubeconfig="+kubeconfig, "--namespace="+harness.SystemNamespace, "--leader-elect", "--shards=8",
		"--metrics-bind-address=0", "--health-probe-bind-address=0")
	cmd.Env = append(os.Environ(), "GODEBUG=gctrace=1")
	program := harness.RunProgram(s.t, cmd)
	return memory{s.t, program}, func() {
		program.Signal(syscall.SIGTERM)
		<-program.Ended()
	}
}

// run has all ConfigMaps changed to version 2: every second by an Update. The last change is done
// when ready says so.
func (s *stage) run(transaction string, ready map[string]any) {
	changes := make([]map[string]any, s.n)
	for i := range changes {
		content := map[string]any{"data": map[string]any{"text": s.text(i, 2)}}
		kind := "Patch"
		if i%2 == 1 {
			kind, content["data"] = "Update", map[string]any{"text": s.text(i, 2), "kept": "yes"}
		}
		changes[i] = map[string]any{
			"type": kind, "content": content, "target": map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": name(i)},
		}
	}
	if ready != nil {
		changes[s.n-1]["readyWhen"] = ready
	}
	text, err := json.Marshal(map[string]any{
		"apiVersion": api.GroupVersion.String(), "kind": api.Kind.Kind, "metadata": map[string]any{"name": transaction},
		"spec": map[string]any{"serviceAccountName": "deployer", "changes": changes},
	})
	require.NoError(s.t, err)
	file := filepath.Join(s.t.TempDir(), transaction+".json")
	require.NoError(s.t, os.WriteFile(file, text, 0o600))
	said, err := s.shell.Run(s.t.Context(), "kubectl janus run -f "+file+" 2>&1")
	require.NoError(s.t, err, said)
}

// ends waits for the end of a Transaction, and wants janusd to have stayed within its memory.
func (s *stage) ends(transaction string, phase api.Phase) {
	s.t.Helper()
	began, peak := time.Now(), int64(0)
	peaks := map[api.Phase]int64{}
	var last *api.Transaction
	for last == nil || !last.Status.Phase.Terminal() {
		require.Less(s.t, time.Since(began), 30*time.Minute, "%s does not end", transaction)
		time.Sleep(100 * time.Millisecond)
		last = s.Transaction(transaction)
		peaks[last.Status.Phase] = max(peaks[last.Status.Phase], s.janusd.peak())
		s.janusd.reset()
	}
	for _, phase := range slices.Sorted(maps.Keys(peaks)) {
		peak = max(peak, peaks[phase])
		s.t.Logf("%s, until it was seen %s: %d MiB", transaction, phase, peaks[phase]>>20)
	}
	live := s.janusd.live()
	s.t.Logf("%s: %d MiB, of which %d were in use at most so far, %s", transaction, peak>>20, live, time.Since(began).Round(time.Second))
	require.Equal(s.t, phase, last.Status.Phase, harness.Describe(last))
	assert.LessOrEqual(s.t, peak>>20, int64(most), "MiB that janusd took for %s", transaction)
	assert.LessOrEqual(s.t, live, mostLive, "MiB that janusd had in use for %s", transaction)
}

// have wants all ConfigMaps to be what they are in a version.
func (s *stage) have(version int) {
	s.t.Helper()
	for i := range s.n {
		got, err := s.Kube.CoreV1().ConfigMaps(s.Namespace).Get(s.t.Context(), name(i), metav1.GetOptions{})
		require.NoError(s.t, err)
		require.True(s.t, maps.Equal(map[string]string{"text": s.text(i, version), "kept": "yes"}, got.Data), "%s is not what it is in version %d", name(i), version)
		for _, entry := range got.ManagedFields {
			require.False(s.t, strings.HasPrefix(entry.Manager, "janus-"), "%s is owned by %s", name(i), entry.Manager)
		}
	}
}
