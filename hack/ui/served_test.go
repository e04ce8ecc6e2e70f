package ui

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authnv1 "k8s.io/api/authentication/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// served starts a janusd that serves the page, and returns its address.
func served(t *testing.T, e *harness.Env) *url.URL {
	t.Helper()
	janusd := exec.Command(harness.BuildJanusd(t), "--kubeconfig="+testcluster.Shared(t).Kubeconfig, "--namespace="+e.Namespace,
		"--watch-namespaces="+e.Namespace, "--ui", "--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=0")
	log, err := janusd.StderrPipe()
	require.NoError(t, err)
	require.NoError(t, janusd.Start())
	t.Cleanup(func() {
		_ = janusd.Process.Kill()
		_ = janusd.Wait()
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var said struct{ Msg, Address string }
		require.NoError(t, json.Unmarshal(lines.Bytes(), &said), lines.Text())
		if said.Msg == "serving metrics" {
			// What nobody reads stops who writes it.
			go func() { _, _ = io.Copy(io.Discard, log) }()
			return &url.URL{Scheme: "https", Host: said.Address}
		}
	}
	require.Fail(t, "janusd does not serve the page")
	return nil
}

// viewer lets the ServiceAccount deployer see the page, and returns a token of it.
func viewer(t *testing.T, e *harness.Env) string {
	t.Helper()
	name := metav1.ObjectMeta{Name: e.Namespace + "-viewer"}
	_, err := e.Kube.RbacV1().ClusterRoles().Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: name, Rules: []rbacv1.PolicyRule{{NonResourceURLs: []string{"/ui"}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = e.Kube.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: name, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: e.Namespace, Name: "deployer"}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
	request, err := e.Kube.CoreV1().ServiceAccounts(e.Namespace).CreateToken(t.Context(), "deployer", &authnv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	return request.Status.Token
}

// unverified is for a certificate that janusd has made itself.
var unverified = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // See above.

// admitted waits until the page is served to anyone who has the token: a role takes effect some
// moments after it is bound.
func admitted(t *testing.T, e *harness.Env, page *url.URL, token string) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: unverified}}
	defer client.CloseIdleConnections()
	e.Until("the page is served", func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page.JoinPath("ui", "api", "transactions").String(), nil)
		require.NoError(t, err)
		r.Header.Set("Authorization", "Bearer "+token)
		answer, err := client.Do(r)
		require.NoError(t, err)
		_ = answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})
}

const waits = `
changes:
- type: Create
  target: {apiVersion: v1, kind: ConfigMap, name: app-config}
  content: {data: {version: "2.0"}}
  readyWhen: {expression: "has(object.data.confirmed)"}
`

// follow opens a Transaction in the browser, and follows it to its end.
func (b *browser) follow(e *harness.Env, name string) {
	b.t.Helper()
	b.becomes("true", rows+`.includes("`+name+`")`)
	b.do(chromedp.Click(`//a[text()="`+name+`"]`, chromedp.BySearch))
	b.becomes("◔ Waiting "+name, title)
	b.becomes("true", all+`.includes("● this Transaction")`)
	e.Merge("tester", "ConfigMap/app-config", `{"data": {"confirmed": "yes"}}`)
	b.becomes("✓ Committed "+name, title)
	assert.Equal(b.t, "● live", b.value(connection))
	assert.Equal(b.t, "false", b.value(all+`.includes("Not to be read")`))
}

// TestThePageOfJanusdBehindAProxy reaches it as people do behind a proxy that lets them in,
// sends a token for them, and has it below a path of its own.
func TestThePageOfJanusdBehindAProxy(t *testing.T) {
	e := harness.New(t)
	page, token := served(t, e), viewer(t, e)
	admitted(t, e, page, token)
	const prefix = "/tools/janus"
	proxy := &httputil.ReverseProxy{
		Transport: &http.Transport{TLSClientConfig: unverified},
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(page)
			r.Out.Header.Set("Authorization", "Bearer "+token)
		},
	}
	front := httptest.NewServer(http.StripPrefix(prefix, proxy))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	b := open(t)
	e.Submit("release-2", waits)
	b.do(chromedp.Navigate(front.URL + prefix + "/ui"))
	assert.Equal(t, front.URL+prefix+"/ui/", b.value("location.href"))
	b.follow(e, "release-2")
	troubles, hosts := b.noticed()
	assert.Empty(t, troubles, "what the console says")
	assert.Equal(t, map[string]bool{front.URL: true}, hosts, "who was asked")
}

// TestThePageOfJanusdWithATypedToken reaches it with nothing in between, as through kubectl
// port-forward: the browser asks for a password, and gets a token.
func TestThePageOfJanusdWithATypedToken(t *testing.T) {
	e := harness.New(t)
	page, token := served(t, e), viewer(t, e)
	admitted(t, e, page, token)
	b := open(t, chromedp.IgnoreCertErrors)
	asked := make(chan string, 100)
	chromedp.ListenTarget(b.ctx, func(event any) {
		switch e := event.(type) {
		case *fetch.EventAuthRequired:
			asked <- e.AuthChallenge.Scheme
			go func() {
				_ = chromedp.Run(b.ctx, fetch.ContinueWithAuth(e.RequestID, &fetch.AuthChallengeResponse{
					Response: fetch.AuthChallengeResponseResponseProvideCredentials, Username: "me", Password: token,
				}))
			}()
		case *fetch.EventRequestPaused:
			go func() { _ = chromedp.Run(b.ctx, fetch.ContinueRequest(e.RequestID)) }()
		}
	})
	e.Submit("release-2", waits)
	ctx, cancel := context.WithTimeout(b.ctx, time.Minute)
	defer cancel()
	require.NoError(t, chromedp.Run(ctx, fetch.Enable().WithHandleAuthRequests(true), chromedp.Navigate(page.JoinPath("ui").String()+"/")))
	b.follow(e, "release-2")
	require.NotEmpty(t, asked)
	assert.Equal(t, "basic", <-asked)
}
