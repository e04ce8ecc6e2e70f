package interop

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/mutate"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// A tool brings the manifests of a version into effect.
type tool struct {
	// name is what docs/gitops.md calls it.
	name string
	// first and next are the commands of the first and of each later release. They are run
	// beside all.yaml and the chart of the same manifests.
	first, next string
	// same is how it says, in each line, that nothing has to be changed; empty for one that does
	// not say so.
	same string
}

var tools = []tool{
	{"Helm", "helm install shop chart", "helm upgrade shop chart", ""},
	{"Helm, client-side", "helm install shop chart --server-side=false", "helm upgrade shop chart --server-side=false", ""},
	{"Flux", "flux-apply <all.yaml", "flux-apply <all.yaml", "unchanged"},
	{"Argo CD", "argocd-sync <all.yaml", "argocd-sync <all.yaml", "Synced"},
	{"Argo CD, server-side", "argocd-sync -server-side <all.yaml", "argocd-sync -server-side <all.yaml", "Synced"},
	{"kubectl", "kubectl apply -f all.yaml", "kubectl apply -f all.yaml", "unchanged"},
	{"kubectl, server-side", "kubectl apply --server-side -f all.yaml", "kubectl apply --server-side -f all.yaml", ""},
}

const (
	settings   = "ConfigMap/settings"
	deployment = "apps/v1 Deployment/web"
	service    = "Service/web"
)

// manifests are those of a version. The first two have a colour.
func manifests(version string, replicas bool) string {
	text := `apiVersion: v1
kind: ConfigMap
metadata:
  name: settings
data:
  version: "VERSION"
  colour: green
---
apiVersion: v1
kind: Service
metadata:
  name: web
spec:
  selector: {app: web}
  ports: [{name: http, port: 80}]
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  selector:
    matchLabels: {app: web}
  template:
    metadata:
      labels: {app: web}
    spec:
      containers:
      - name: web
        image: example.com/web:VERSION
        env: [{name: MODE, value: mVERSION}]
`
	if !replicas {
		text = strings.Replace(text, "  replicas: 1\n", "", 1)
	}
	if version == "3" {
		text = strings.Replace(text, "  colour: green\n", "", 1)
	}
	return strings.ReplaceAll(text, "VERSION", version)
}

// desk is where one tool releases, in a namespace of its own.
type desk struct {
	*harness.Env
	t        *testing.T
	tool     tool
	shell    *testcluster.Shell
	dir      string
	replicas bool
}

func newDesk(t *testing.T, by tool) *desk {
	t.Helper()
	e := harness.New(t)
	dir := t.TempDir()
	shell, err := testcluster.Shared(t).NewShell(e.Namespace, dir)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, shell.Close()) })
	for name, find := range map[string]func() (string, error){"helm": testcluster.Helm, "flux-apply": testcluster.Flux, "argocd-sync": testcluster.ArgoCD} {
		if !strings.HasPrefix(by.first, name) {
			continue
		}
		program, err := find()
		require.NoError(t, err)
		require.NoError(t, shell.Provide(name, program))
	}
	chart := filepath.Join(dir, "chart", "templates")
	require.NoError(t, os.MkdirAll(chart, 0o750))
	d := &desk{Env: e, t: t, tool: by, shell: shell, dir: dir}
	d.write("chart/Chart.yaml", "{apiVersion: v2, name: shop, version: 0.1.0}\n")
	return d
}

func (d *desk) write(file, text string) {
	d.t.Helper()
	require.NoError(d.t, os.WriteFile(filepath.Join(d.dir, file), []byte(text), 0o600))
}

// release has the tool bring a version into effect, and returns what it has said.
func (d *desk) release(version string) (string, error) {
	d.t.Helper()
	text := manifests(version, d.replicas)
	d.write("all.yaml", text)
	d.write("chart/templates/all.yaml", text)
	if version == "1" {
		return d.shell.Run(d.t.Context(), d.tool.first)
	}
	return d.shell.Run(d.t.Context(), d.tool.next)
}

// released is release where it has to work.
func (d *desk) released(version string) {
	d.t.Helper()
	said, err := d.release(version)
	require.NoError(d.t, err, "%s", said)
	d.has(version)
}

// unchanged fails unless the tool finds that there is what it has released last.
func (d *desk) unchanged() {
	d.t.Helper()
	if d.tool.same == "" {
		return
	}
	said, err := d.shell.Run(d.t.Context(), d.tool.next)
	require.NoError(d.t, err, "%s", said)
	require.NotEmpty(d.t, said)
	for line := range strings.Lines(said) {
		require.True(d.t, strings.HasSuffix(line, d.tool.same+"\n"), "%s", said)
	}
}

func (d *desk) run(command string) {
	d.t.Helper()
	said, err := d.shell.Run(d.t.Context(), command)
	require.NoError(d.t, err, "%s", said)
}

// has fails unless everything that the manifests of a version say is there.
func (d *desk) has(version string) {
	d.t.Helper()
	require.Equal(d.t, version, value(d.Object(settings), "data", "version"))
	require.Equal(d.t, "example.com/web:"+version, d.image())
	require.Equal(d.t, "http", value(d.Object(service), "spec", "ports", "name"))
	if version == "3" {
		require.Nil(d.t, value(d.Object(settings), "data", "colour"), "what the manifests have no more is gone")
	} else {
		require.Equal(d.t, "green", value(d.Object(settings), "data", "colour"))
	}
}

func (d *desk) image() any {
	d.t.Helper()
	return value(d.Object(deployment), "spec", "template", "spec", "containers", "image")
}

// value is what is at a path; of a list it is in the first element.
func value(obj *unstructured.Unstructured, path ...string) any {
	if obj == nil {
		return nil
	}
	var at any = obj.Object
	for _, field := range path {
		if list, ok := at.([]any); ok && len(list) > 0 {
			at = list[0]
		}
		fields, _ := at.(map[string]any)
		at = fields[field]
	}
	return at
}

var field = regexp.MustCompile(`"f:([^"]+)"`)

// owners are who owns which fields of all objects, without the times. Left out are the marks by
// which an object that a Transaction has made says so; Janus must own nothing else.
func (d *desk) owners() map[string]string {
	d.t.Helper()
	out := map[string]string{}
	for _, ref := range []string{settings, deployment, service} {
		obj := d.Object(ref)
		require.NotNil(d.t, obj, ref)
		for _, e := range obj.GetManagedFields() {
			switch text := string(e.FieldsV1.GetRawBytes()); {
			case e.Manager == mutate.DefaultManager:
				for _, field := range field.FindAllStringSubmatch(text, -1) {
					require.True(d.t, slices.Contains([]string{"metadata", "labels", "annotations"}, field[1]) || strings.HasPrefix(field[1], "janus.io/"), "%s of %s", text, ref)
				}
			case e.Subresource != "status":
				out[strings.Join([]string{ref, e.Manager, string(e.Operation), e.Subresource}, " ")] = text
			}
		}
	}
	return out
}

// transact runs a Transaction that has to end in a phase.
func (d *desk) transact(name, spec string, phase api.Phase) {
	d.t.Helper()
	txn := d.Run(name, spec)
	require.Equal(d.t, phase, txn.Status.Phase, harness.Describe(txn))
}

// releasing is the spec of a Transaction that gives what a manager owns of the Deployment to the
// one that has applied it, or to nobody.
func (d *desk) releasing(from string) string {
	d.t.Helper()
	to := ""
	for _, e := range d.Object(deployment).GetManagedFields() {
		if e.Operation == metav1.ManagedFieldsOperationApply {
			require.Empty(d.t, to, "one tool applies it")
			to = "fieldManager: " + e.Manager + "\n"
		}
	}
	return to + "changes: [{target: {apiVersion: apps/v1, kind: Deployment, name: web}, type: Patch, release: {managers: [" + from + "]}}]"
}
