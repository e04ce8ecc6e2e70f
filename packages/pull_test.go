package packages_test

import (
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic/fake"
	"sigs.k8s.io/yaml"

	"janus.io/janus/internal/registries"
	"janus.io/janus/packages"
	"janus.io/janus/packages/installed"
	"janus.io/janus/test/xpkg"
)

// holding is a cluster that holds objects.
func holding(t *testing.T, texts ...string) *fake.FakeDynamicClient {
	t.Helper()
	var objects []runtime.Object
	for _, text := range texts {
		u := &unstructured.Unstructured{}
		require.NoError(t, yaml.Unmarshal([]byte(text), &u.Object))
		objects = append(objects, u)
	}
	return fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds, objects...)
}

func secret(name, text string) string {
	return "{apiVersion: v1, kind: Secret, metadata: {name: " + name + ", namespace: crossplane-system}, data: {.dockerconfigjson: " + base64.StdEncoding.EncodeToString([]byte(text)) + "}}"
}

// The Secret of a package is tried before the credentials of the user.
func TestImagesAreReadWithTheSecretsOfCrossplane(t *testing.T) {
	t.Setenv("DOCKER_CONFIG", t.TempDir())
	r := xpkg.Serve(t, func(real http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
			if user, password, _ := request.BasicAuth(); request.Method == http.MethodGet && (user != "robot" || password != "hunter2") {
				w.Header().Set("WWW-Authenticate", `Basic realm="registry"`)
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			real.ServeHTTP(w, request)
		})
	})
	r.Push("acme/a:v1.0.0", "")
	cluster := holding(t,
		secret("pull", `{"auths": {"`+r.Host+`": {"username": "robot", "password": "hunter2"}}}`),
		secret("broken", "{"), "{apiVersion: v1, kind: Secret, metadata: {name: empty, namespace: crossplane-system}}")
	pulling := packages.Pulling(cluster, packages.DefaultNamespace, registries.Patience{Pull: time.Minute, Stall: time.Minute, Attempts: 1})

	with, err := pulling(t.Context(), []string{"pull"})
	require.NoError(t, err)
	tags, err := with.Tags(t.Context(), r.Host+"/acme/a")
	require.NoError(t, err)
	assert.Equal(t, []string{"v1.0.0"}, tags)

	without, err := pulling(t.Context(), nil)
	require.NoError(t, err)
	_, err = without.Tags(t.Context(), r.Host+"/acme/a")
	require.ErrorContains(t, err, "log in")

	for name, want := range map[string]string{
		"broken": "read pull secret crossplane-system/broken: its key .dockerconfigjson has no credentials for registries",
		"empty":  "read pull secret crossplane-system/empty: it has no key .dockerconfigjson",
		"none":   `read pull secret crossplane-system/none: secrets "none" not found`,
	} {
		_, err := pulling(t.Context(), []string{name})
		assert.EqualError(t, err, want)
	}
}

func TestCrossplaneIsKnownByItsDeployment(t *testing.T) {
	deployment := func(image, args, label string) string {
		return "{apiVersion: apps/v1, kind: Deployment, metadata: {name: crossplane, namespace: crossplane-system, labels: {app.kubernetes.io/version: " + label + "}}, " +
			"spec: {template: {spec: {containers: [{name: c, image: '" + image + "', args: [" + args + "]}]}}}}"
	}
	for want, text := range map[installed.Crossplane]string{
		{Version: "v2.1.3"}:                 deployment("xpkg.crossplane.io/crossplane/crossplane:v2.1.3", "core, start", "v9"),
		{Version: "v2.1.3", Upgrades: true}: deployment("mirror/crossplane@sha256:1", "core, start, --enable-dependency-version-upgrades", "v2.1.3"),
		{Version: "v2.1.4", Upgrades: true}: deployment("xpkg.crossplane.io/crossplane/crossplane:v2.1.4", "--enable-dependency-version-upgrades=true", "v9"),
	} {
		assert.Equal(t, want, packages.Crossplane(t.Context(), holding(t, text), packages.DefaultNamespace))
	}
	assert.Zero(t, packages.Crossplane(t.Context(), holding(t), packages.DefaultNamespace))
}
