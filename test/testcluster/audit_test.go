package testcluster

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// as returns a cluster whose administrator acts for another user.
func as(c *Cluster, user string, groups ...string) *Cluster {
	config := c.Config()
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: groups}
	return &Cluster{config: config}
}

func TestAuditCountsEveryRequestMade(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	alice := as(c, "alice-"+namespace, "system:masters")
	path := createConfigMap(t, alice, namespace, "counted")
	const gets = 25
	for range gets {
		if err := alice.call(t.Context(), http.MethodGet, path, nil, nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := alice.call(t.Context(), http.MethodDelete, path+"?dryRun=All", nil, nil); err != nil {
		t.Fatal(err)
	}
	events, err := c.Audit("alice-"+namespace, `"resource":"configmaps"`)
	if err != nil {
		t.Fatal(err)
	}
	mine := Filter(events, ByActor("alice-"+namespace), OnResource("", "configmaps"), InNamespace(namespace))
	if got := len(Filter(mine, ByVerb("get"))); got != gets {
		t.Errorf("the log has %d gets, want %d", got, gets)
	}
	persisted := Filter(mine, Persisted)
	if len(persisted) != 1 {
		t.Fatalf("the log has %d persisted writes, want 1", len(persisted))
	}
	want := AuditEvent{
		Verb: "create", User: "kubernetes-admin", ImpersonatedUser: "alice-" + namespace,
		RequestURI: "/api/v1/namespaces/" + namespace + "/configmaps",
		Resource:   "configmaps", Namespace: namespace, Name: "counted", Code: 201, Stage: "ResponseComplete",
	}
	got := persisted[0]
	if got.ID == "" || got.UserAgent == "" || got.Completed.Before(got.Received) || got.Received.IsZero() {
		t.Errorf("incomplete event %+v", got)
	}
	got.ID, got.UserAgent, got.Received, got.Completed = "", "", time.Time{}, time.Time{}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if dry := Filter(mine, ByVerb("delete")); len(dry) != 1 || !dry[0].DryRun {
		t.Errorf("the dry run is logged as %+v", dry)
	}
}

func TestAuditShowsRefusals(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	user := "bob-" + namespace
	err := as(c, user).call(t.Context(), http.MethodGet, "/api/v1/namespaces/"+namespace+"/secrets", nil, nil)
	var status *statusError
	if !errors.As(err, &status) || status.code != http.StatusForbidden {
		t.Fatalf("%s got %v, want forbidden", user, err)
	}
	events, err := c.Audit()
	if err != nil {
		t.Fatal(err)
	}
	refused := Filter(events, ByActor(user), ByVerb("list"), OnResource("", "secrets"))
	if len(refused) != 1 || refused[0].Code != http.StatusForbidden || !refused[0].Denied {
		t.Errorf("the log has %+v, want one refusal", refused)
	}
}

func TestARefusedCreationWasNotCutOff(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	user := "erin-" + namespace
	_ = as(c, user).call(t.Context(), http.MethodPost, "/api/v1/namespaces/"+namespace+"/configmaps",
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"refused"}}`), nil)
	events, err := c.Audit(user)
	if err != nil {
		t.Fatal(err)
	}
	refused := Filter(events, ByActor(user), ByVerb("create"), OnResource("", "configmaps"))
	if len(refused) != 1 || refused[0].Name != "" || refused[0].Code != http.StatusForbidden || Unread(refused[0]) {
		t.Errorf("the log has %+v, want one refusal without a name, which was not cut off", refused)
	}
}

func TestAuditTellsARefusalForWantOfARightFromAnother(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	user := "dave-" + namespace
	all := as(c, user, "system:masters")
	// Who may do anything lacks no right: a Pod without a ServiceAccount is refused by
	// admission.
	pod := []byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"p"},"spec":{"serviceAccountName":"nobody","containers":[{"name":"c","image":"i"}]}}`)
	_ = all.call(t.Context(), http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods", pod, nil)
	events, err := c.Audit()
	if err != nil {
		t.Fatal(err)
	}
	refused := Filter(events, ByActor(user), ByVerb("create"), OnResource("", "pods"))
	if len(refused) != 1 || refused[0].Code != http.StatusForbidden || refused[0].Denied {
		t.Errorf("the log has %+v, want one refusal by admission", refused)
	}
}

func TestAuditDoesNotNameACreationWhoseContentDidNotArrive(t *testing.T) {
	c := Shared(t)
	namespace := Namespace(t)
	client, err := rest.HTTPClientFor(c.Config())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cut := context.WithCancel(t.Context())
	content, sent := io.Pipe()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Config().Host+"/api/v1/namespaces/"+namespace+"/configmaps", content)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Content-Type", "application/json")
	go func() {
		_, _ = io.WriteString(sent, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"half`)
		time.Sleep(time.Second)
		cut()
	}()
	if answer, err := client.Do(request); err == nil {
		_ = answer.Body.Close()
		t.Fatalf("half a request was answered by %s", answer.Status)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(100 * time.Millisecond) {
		events, err := c.Audit(namespace)
		if err != nil {
			t.Fatal(err)
		}
		if len(Filter(events, OnResource("", "configmaps"), InNamespace(namespace), Unread)) == 1 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the log has %+v, want a creation without a name that was answered 500", Filter(events, ByVerb("create")))
		}
	}
}

func TestAuditHoldsCompletedRequestsOnly(t *testing.T) {
	c := Shared(t)
	user := "carol-" + Namespace(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	// The watch ends with the context, and only then it is logged.
	_ = as(c, user, "system:masters").call(ctx, http.MethodGet, "/api/v1/namespaces?watch=true", nil, nil)
	within(t, 10*time.Second, func(context.Context) error {
		events, err := c.Audit()
		if err != nil {
			return err
		}
		if slices.ContainsFunc(events, func(e AuditEvent) bool { return e.Stage != "ResponseComplete" }) {
			t.Fatal("the log holds another stage than ResponseComplete")
		}
		if len(Filter(events, ByActor(user), ByVerb("watch"))) != 1 {
			return errors.New("the watch is not logged")
		}
		return nil
	})
}

func TestAuditIsAnErrorWhereItIsOff(t *testing.T) {
	if _, err := (&Cluster{}).Audit(); !errors.Is(err, ErrNoAudit) {
		t.Errorf("got %v, want ErrNoAudit", err)
	}
}

func TestParseAuditLeavesAnUnfinishedLineAlone(t *testing.T) {
	all := func([]byte) bool { return true }
	events, err := parseAudit(strings.NewReader(`{"verb":"get","objectRef":{"apiGroup":"apps","resource":"deployments","subresource":"scale"}}
{"verb":"li`), all)
	if err != nil {
		t.Fatal(err)
	}
	want := []AuditEvent{{Verb: "get", APIGroup: "apps", Resource: "deployments", Subresource: "scale"}}
	if !slices.Equal(events, want) {
		t.Errorf("got %+v, want %+v", events, want)
	}
	if _, err := parseAudit(strings.NewReader("no JSON\n"), all); err == nil {
		t.Error("a broken line is no error")
	}
}

func TestDryRunIsReadFromTheQuery(t *testing.T) {
	for uri, want := range map[string]bool{
		"/api/v1/namespaces/a/pods?dryRun=All":                   true,
		"/api/v1/namespaces/a/pods/b?fieldManager=x&dryRun=All":  true,
		"/api/v1/namespaces/a/pods":                              false,
		"/api/v1/namespaces/a/pods?dryRun=":                      false,
		"/api/v1/namespaces/a/pods?labelSelector=dryRun%3DAll":   false,
		"/apis/apps/v1/namespaces/a/deployments/dryRun=All/fake": false,
	} {
		if got := dryRun(uri); got != want {
			t.Errorf("%s: got %t, want %t", uri, got, want)
		}
	}
}
