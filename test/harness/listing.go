package harness

import (
	"strings"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Names returns the names of the objects of a kind, written as in Object, that have labels.
func (e *Env) Names(kind, labels string) (names []string) {
	e.t.Helper()
	version, kind, _ := strings.Cut(kind, " ")
	client, err := e.For(schema.FromAPIVersionAndKind(version, kind), e.Namespace)
	require.NoError(e.t, err)
	found, err := client.List(e.t.Context(), metav1.ListOptions{LabelSelector: labels})
	require.NoError(e.t, err)
	for _, obj := range found.Items {
		names = append(names, obj.GetName())
	}
	return names
}

// NextSecond waits until what is made has a later creationTimestamp than what was.
func (e *Env) NextSecond() {
	e.t.Helper()
	wait := func(name string) metav1.Time {
		made, err := e.Kube.CoreV1().ConfigMaps(e.Namespace).Create(e.t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: name}}, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		require.NoError(e.t, err)
		return made.CreationTimestamp
	}
	first := wait("now-")
	e.Until("the next second has begun", func() bool { now := wait("next-"); return first.Before(&now) })
}
