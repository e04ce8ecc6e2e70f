package deploy_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"janus.io/janus/test/harness"
)

// TestJanusdMakesNoTokens tries to have the control plane make a token of a powerful ServiceAccount, as
// who has stolen that of janusd.
func TestJanusdMakesNoTokens(t *testing.T) {
	s := newScene(t)
	create := func(client dynamic.Interface, kind string) error {
		secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "type": kind}}
		secret.SetName("more")
		secret.SetAnnotations(map[string]string{"kubernetes.io/service-account.name": "default"})
		_, err := client.Resource(secrets).Namespace("kube-system").Create(t.Context(), secret, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err
	}
	as := s.in.as(t, janusd.User)
	for _, kind := range []string{"kubernetes.io/service-account-token", "bootstrap.kubernetes.io/token", "example.com/any"} {
		require.Eventually(t, func() bool {
			err := create(as, kind)
			return err != nil && strings.Contains(err.Error(), named("tokens"))
		}, settle, poll, "the policy is enforced")
		require.NoError(t, create(s.in.dynamic, kind), "others do")
	}
	for _, kind := range []string{"", "Opaque"} {
		require.NoError(t, create(as, kind), "what records are")
	}
}

// TestOnlyJanusdWritesItsSettingsAndCounters tries to change what clients go by, and the numbers of
// revisions, as an administrator of the cluster.
func TestOnlyJanusdWritesItsSettingsAndCounters(t *testing.T) {
	s := newScene(t)
	for _, c := range []struct {
		gvr             schema.GroupVersionResource
		namespace, text string
	}{
		{configMaps, ownNamespace, `{apiVersion: v1, kind: ConfigMap, metadata: {name: janus-settings}, data: {sensitiveKinds: ""}}`},
		{revisions, s.Namespace, `{apiVersion: apps/v1, kind: ControllerRevision, metadata: {name: janus-revisions}, revision: 7, data: {}}`},
	} {
		decoded, err := harness.Decode(c.text)
		require.NoError(t, err)
		object := decoded[0]
		at := func(client dynamic.Interface) dynamic.ResourceInterface {
			return client.Resource(c.gvr).Namespace(c.namespace)
		}
		refused := func(what string, do func(dynamic.ResourceInterface) error) {
			t.Helper()
			for _, client := range []dynamic.Interface{s.in.dynamic, s.admin} {
				if err := do(at(client)); c.namespace == s.Namespace || client == s.in.dynamic {
					s.refused(err, "settings", what, "only janusd writes it", asJanusd)
				}
			}
		}
		create := func(client dynamic.ResourceInterface, o *unstructured.Unstructured) error {
			_, err := client.Create(t.Context(), o, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
			return err
		}
		name := object.GetName()
		require.Eventually(t, func() bool {
			err := create(at(s.in.dynamic), object)
			return err != nil && strings.Contains(err.Error(), named("settings"))
		}, settle, poll, "the policy is enforced")
		refused("may not create "+object.GetKind(), func(client dynamic.ResourceInterface) error { return create(client, object) })

		_, err = at(s.in.as(t, janusd.User)).Create(t.Context(), object, metav1.CreateOptions{})
		if !apierrors.IsAlreadyExists(err) { // The settings are told once for all tests.
			require.NoError(t, err)
		}
		refused("may not update", func(client dynamic.ResourceInterface) error {
			_, err := client.Patch(t.Context(), name, types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			return err
		})
		refused("may not delete", func(client dynamic.ResourceInterface) error {
			return client.Delete(t.Context(), name, metav1.DeleteOptions{})
		})
		refused("may not delete", func(client dynamic.ResourceInterface) error {
			return client.DeleteCollection(t.Context(), metav1.DeleteOptions{}, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		})
	}
	mine := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	mine.SetName("janus-settings")
	require.NoError(t, s.create(configMaps, mine, metav1.CreateOptions{}), "elsewhere the name means nothing")
}
