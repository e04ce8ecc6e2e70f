package bundles

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestABundleThatNoRequestHolds is about 150 objects, ten of which are definitions of 600 KB
// each: the API server takes 3 MiB in one request, and its store 1.5 MiB in one object.
func TestABundleThatNoRequestHolds(t *testing.T) {
	dir := t.TempDir()
	for _, version := range []int{1, 2} {
		text := large(version)
		assert.Greater(t, len(text), 5_900_000)
		assert.Equal(t, 150, strings.Count(text, "\n---\n"))
		require.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("v%d.yaml", version)), []byte(text), 0o600))
	}
	tried(t, built(t), dir)
}

// large is a version of the bundle. The objects are in an order in which they cannot be made.
func large(version int) string {
	var b strings.Builder
	object := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n---\n", args...) }
	for i := range 10 {
		object(`apiVersion: large.example.com/v1
kind: Large%[1]d
metadata: {name: one}
spec: {field0: "version %[2]d", field1: "%[1]d"}`, i, version)
	}
	for i := range 40 {
		object(`apiVersion: v1
kind: ConfigMap
metadata: {name: settings-%[1]d, labels: {version: "%[2]d"}}
data: {version: "%[2]d", text: "%[3]s"}`, i, version, strings.Repeat("setting ", 200))
	}
	for i := range 20 {
		object(`apiVersion: v1
kind: Secret
metadata: {name: key-%[1]d}
stringData: {key: "key-%[1]d-of-version-%[2]d"}`, i, version)
	}
	for i := range 20 {
		object(`apiVersion: v1
kind: ServiceAccount
metadata: {name: account-%[1]d, labels: {version: "%[2]d"}}`, i, version)
	}
	for i := range 20 {
		object(`apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: role-%[1]d}
rules: [{apiGroups: [""], resources: [configmaps], resourceNames: [settings-%[1]d, "version-%[2]d"], verbs: [get]}]`, i, version)
	}
	for i := range 10 {
		object(`apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: binding-%[1]d, labels: {version: "%[2]d"}}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: role-%[1]d}
subjects: [{kind: ServiceAccount, name: account-%[1]d}]`, i, version)
	}
	for i := range 10 {
		object(`apiVersion: v1
kind: Service
metadata: {name: service-%[1]d}
spec: {selector: {app: app-%[1]d}, ports: [{name: http, port: 80, targetPort: %[2]d}]}`, i, 8000+version)
	}
	for i := range 10 {
		object(`apiVersion: apps/v1
kind: Deployment
metadata: {name: app-%[1]d}
spec:
  selector: {matchLabels: {app: app-%[1]d}}
  template:
    metadata: {labels: {app: app-%[1]d}}
    spec:
      containers: [{name: app, image: "example.com/app:%[2]d", env: [{name: VERSION, value: "%[2]d"}]}]`, i, version)
	}
	for i := range 10 {
		object("%s", definition(i, version))
	}
	return b.String()
}

// definition is a CustomResourceDefinition of 600 KB, most of it descriptions, as those that are
// generated from types are.
func definition(n, version int) string {
	var fields strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&fields, "              field%d: {type: string, description: %q}\n", i,
			fmt.Sprintf("field %d of version %d of the definition %d says what is to be done with it: %s", i, version, n, strings.Repeat("words and words ", 10)))
	}
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: large%[1]ds.large.example.com}
spec:
  group: large.example.com
  scope: Namespaced
  names: {kind: Large%[1]d, plural: large%[1]ds, singular: large%[1]d, listKind: Large%[1]dList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
%[2]s`, n, fields.String())
}
