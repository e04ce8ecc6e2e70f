package packages

import (
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

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// buildJanusd builds the program once for all tests.
var buildJanusd = sync.OnceValues(func() (string, error) { return harness.BuildJanusdIn(scratch) })

// A janusd is a process that stands in for the Pods of the Deployment, in which nothing
// runs: with the flags and the own namespace that the Deployment gives them, and as
// the ServiceAccount of the Pods, with a token of it and with nothing else.
type janusd struct {
	*harness.Program
	d *desk
}

// ownNamespace is janusd's.
const ownNamespace = "janus-system"

// startJanusd starts what the Deployment says, with some more flags.
func startJanusd(d *desk, flags ...string) *janusd {
	d.t.Helper()
	binary, err := buildJanusd()
	require.NoError(d.t, err)
	pod := read[appsv1.Deployment](d, "kubectl get deployment janusd -n "+ownNamespace).Spec.Template.Spec
	token := d.run("kubectl create token -n " + ownNamespace + " " + pod.ServiceAccountName)

	args := append([]string{"--kubeconfig=" + kubeconfig(d, token), "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0"},
		slices.DeleteFunc(pod.Containers[0].Args, func(arg string) bool { return arg == "--metrics-bind-address=:8443" })...)
	run := exec.Command(binary, append(args, flags...)...)
	run.Env = append(os.Environ(), "POD_NAMESPACE="+ownNamespace)
	j := &janusd{harness.RunProgram(d.t, run), d}
	d.t.Cleanup(func() {
		j.stop()
		if d.t.Failed() {
			d.t.Logf("janusd wrote:\n%s", j.Log())
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

// kill ends janusd as the loss of its Node would.
func (j *janusd) kill() {
	j.Signal(syscall.SIGKILL)
	<-j.Ended()
}

// stop ends janusd in order, as the end of its Pod would.
func (j *janusd) stop() {
	j.Signal(syscall.SIGTERM)
	<-j.Ended()
}
