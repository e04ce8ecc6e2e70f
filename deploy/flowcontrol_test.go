package deploy_test

import (
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

// The API server serves janusd from a level of its own, and what it asks as another ServiceAccount from
// that one's.
func TestJanusdHasAPriorityLevelOfItsOwn(t *testing.T) {
	in := install(t)
	in.objects = withComponent(t, ".", "flowcontrol")
	levels, schemas := in.client.FlowcontrolV1().PriorityLevelConfigurations(), in.client.FlowcontrolV1().FlowSchemas()
	strict := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict}
	level, err := levels.Create(t.Context(), into[flowcontrolv1.PriorityLevelConfiguration](t, in.find(t, "PriorityLevelConfiguration", "janusd-janus-system")), strict)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, levels.Delete(context.WithoutCancel(t.Context()), level.Name, metav1.DeleteOptions{}))
	})
	schema, err := schemas.Create(t.Context(), into[flowcontrolv1.FlowSchema](t, in.find(t, "FlowSchema", "janusd-janus-system")), strict)
	require.NoError(t, err)
	t.Cleanup(func() {
		require.NoError(t, schemas.Delete(context.WithoutCancel(t.Context()), schema.Name, metav1.DeleteOptions{}))
	})
	serviceAccounts, err := schemas.Get(t.Context(), "service-accounts", metav1.GetOptions{})
	require.NoError(t, err)
	assert.Less(t, schema.Spec.MatchingPrecedence, serviceAccounts.Spec.MatchingPrecedence)

	// flow is by which schema the API server serves a user.
	flow := func(user string) string {
		config := rest.CopyConfig(in.config)
		config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:serviceaccounts", "system:authenticated"}}
		client, err := rest.HTTPClientFor(config)
		require.NoError(t, err)
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+"/api/v1/namespaces/default/configmaps", nil)
		require.NoError(t, err)
		answer, err := client.Do(request)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		return answer.Header.Get(flowcontrolv1.ResponseHeaderMatchedFlowSchemaUID)
	}
	const user = "system:serviceaccount:%s:%s"
	require.Eventually(t, func() bool { return flow(fmt.Sprintf(user, ownNamespace, "janusd")) == string(schema.UID) }, time.Minute, 100*time.Millisecond)
	assert.Equal(t, string(serviceAccounts.UID), flow(fmt.Sprintf(user, "shop", "deploy-sa")))
	assert.Equal(t, string(serviceAccounts.UID), flow(fmt.Sprintf(user, ownNamespace, "another")))
}
