package packages

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"janus.io/janus/internal/janustest"
	"janus.io/janus/internal/testcluster"
)

// buildJanusd builds the program once for all tests.
var buildJanusd = sync.OnceValues(func() (string, error) {
	path := filepath.Join(scratch, "janusd")
	build := exec.Command("go", "build", "-buildvcs=false", "-trimpath", "-o", path, "./cmd/janusd")
	build.Dir = janustest.Root()
	build.Stderr = os.Stderr
	return path, build.Run()
})

// A janusd is a process that stands in for the Pods of the Deployment, in which nothing
// runs: with the flags and the own namespace that the Deployment gives them, and as
// the ServiceAccount of the Pods, with a token of it and with nothing else.
type janusd struct {
	d     *desk
	cmd   *exec.Cmd
	ended chan struct{}

	mu     sync.Mutex
	stderr bytes.Buffer
}

// startJanusd starts what the Deployment says.
func startJanusd(d *desk) *janusd {
	d.t.Helper()
	const namespace = "janus-system"
	binary, err := buildJanusd()
	require.NoError(d.t, err)
	pod := read[appsv1.Deployment](d, "kubectl get deployment janusd -n "+namespace).Spec.Template.Spec
	token := d.run("kubectl create token -n " + namespace + " " + pod.ServiceAccountName)

	j := &janusd{d: d, ended: make(chan struct{})}
	args := append([]string{"--kubeconfig=" + kubeconfig(d, token), "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0"},
		slices.DeleteFunc(pod.Containers[0].Args, func(arg string) bool { return arg == "--metrics-bind-address=:8443" })...)
	j.cmd = exec.Command(binary, args...)
	j.cmd.Env = append(os.Environ(), "POD_NAMESPACE="+namespace)
	j.cmd.Stderr = j
	require.NoError(d.t, j.cmd.Start())
	go func() {
		_ = j.cmd.Wait()
		close(j.ended)
	}()
	d.t.Cleanup(func() {
		j.stop()
		if d.t.Failed() {
			d.t.Logf("janusd wrote:\n%s", j.log())
		}
	})
	return j
}

// kubeconfig writes one that has the token and nothing of the administrator's.
func kubeconfig(d *desk, token string) string {
	d.t.Helper()
	admin, err := clientcmd.LoadFromFile(testcluster.Shared(d.t).Kubeconfig)
	require.NoError(d.t, err)
	admin.AuthInfos = map[string]*clientcmdapi.AuthInfo{"janusd": {Token: token}}
	for _, context := range admin.Contexts {
		context.AuthInfo = "janusd"
	}
	path := filepath.Join(d.t.TempDir(), "kubeconfig")
	require.NoError(d.t, clientcmd.WriteToFile(*admin, path))
	return path
}

// Write takes what janusd logs.
func (j *janusd) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stderr.Write(b)
}

func (j *janusd) log() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stderr.String()
}

// stop ends janusd in order, as the end of its Pod would.
func (j *janusd) stop() {
	_ = j.cmd.Process.Signal(syscall.SIGTERM)
	<-j.ended
}
