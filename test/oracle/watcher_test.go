package oracle_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/harness"
)

func TestTheWatcherSeesEveryVersionInOrder(t *testing.T) {
	e := harness.New(t)
	w := harness.NewWatcher(t, e.Client)
	maps := e.Kube.CoreV1().ConfigMaps(e.Namespace)
	for i := range 50 {
		cm, err := maps.Create(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{})
		require.NoError(t, err)
		cm.Data = map[string]string{"n": string(rune('a' + i%20))}
		_, err = maps.Update(t.Context(), cm, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, maps.Delete(t.Context(), "a", metav1.DeleteOptions{}))
		n := 0
		last := int64(0)
		for _, v := range w.History(e.Namespace) {
			require.LessOrEqual(t, last, v.Revision)
			last = v.Revision
			if v.Ref.Resource == "configmaps" && v.Ref.Name == "a" {
				n++
			}
		}
		require.Equal(t, 3*(i+1), n)
	}
	w.Forget(e.Namespace)
	require.Empty(t, w.History(e.Namespace))
}
