package serving

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
	authnv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"

	"janus.io/janus/test/testcluster"
)

var toMetrics = Access{Path: "/metrics", Role: "janus-metrics-reader"}

// fixture is a guarded page, and a client of the administrator to prepare who may see it.
type fixture struct {
	t         *testing.T
	kube      kubernetes.Interface
	namespace string
	clock     *clocktesting.FakePassiveClock
	logs      *observer.ObservedLogs
	guard     *Guard
	page      *httptest.Server
	asked     int
}

// newFixture guards a page by a Guard that asks as the configuration says.
func newFixture(t *testing.T, change func(*rest.Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, namespace: testcluster.Namespace(t), clock: clocktesting.NewFakePassiveClock(time.Now())}
	config := testcluster.Shared(t).Config()
	var err error
	f.kube, err = kubernetes.NewForConfig(config)
	require.NoError(t, err)
	change(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return counting(func(r *http.Request) (*http.Response, error) { f.asked++; return next.RoundTrip(r) })
	})
	asking, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	core, logs := observer.New(zapcore.DebugLevel)
	f.logs = logs
	f.guard = NewGuard(asking, f.clock, zap.New(core))
	f.page = httptest.NewServer(f.guard.Protect(toMetrics,
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page") })))
	t.Cleanup(f.page.Close)
	return f
}

type counting func(*http.Request) (*http.Response, error)

func (c counting) RoundTrip(r *http.Request) (*http.Response, error) { return c(r) }

// token returns a token of a new ServiceAccount.
func (f *fixture) token(account string) string {
	f.t.Helper()
	accounts := f.kube.CoreV1().ServiceAccounts(f.namespace)
	_, err := accounts.Create(f.t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: account}}, metav1.CreateOptions{})
	require.NoError(f.t, err)
	request, err := accounts.CreateToken(f.t.Context(), account, &authnv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(f.t, err)
	return request.Status.Token
}

// allow lets a ServiceAccount get a path.
func (f *fixture) allow(account, path string) {
	f.t.Helper()
	name := f.namespace + "-" + account
	_, err := f.kube.RbacV1().ClusterRoles().Create(f.t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Rules:      []rbacv1.PolicyRule{{NonResourceURLs: []string{path}, Verbs: []string{"get"}}},
	}, metav1.CreateOptions{})
	require.NoError(f.t, err)
	_, err = f.kube.RbacV1().ClusterRoleBindings().Create(f.t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.namespace, Name: account}},
	}, metav1.CreateOptions{})
	require.NoError(f.t, err)
}

// reply is an answer that has been read.
type reply struct {
	StatusCode int
	Header     http.Header
}

// get asks for the page.
func (f *fixture) get(authorization string) (reply, string) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.page.URL+"/metrics", nil)
	require.NoError(f.t, err)
	if authorization != "" {
		r.Header.Set("Authorization", authorization)
	}
	answer, err := f.page.Client().Do(r)
	require.NoError(f.t, err)
	defer func() { _ = answer.Body.Close() }()
	body, err := io.ReadAll(answer.Body)
	require.NoError(f.t, err)
	return reply{answer.StatusCode, answer.Header}, string(body)
}

// awaitAllowed asks until the page is served: a role takes effect some moments after it is
// bound, and a refusal stands for a while.
func (f *fixture) awaitAllowed(token string) {
	f.t.Helper()
	require.Eventually(f.t, func() bool {
		f.clock.SetTime(f.clock.Now().Add(refusedFor))
		answer, body := f.get("Bearer " + token)
		return answer.StatusCode == http.StatusOK && body == "the page"
	}, time.Minute, 50*time.Millisecond)
}

func unchanged(*rest.Config) {}

func TestThePageIsForThoseWhoMayGetItsPath(t *testing.T) {
	f := newFixture(t, unchanged)
	for _, authorization := range []string{"", "Bearer", "Bearer ", "Basic dXNlcjpwYXNzd29yZA==", "Token abc"} {
		answer, body := f.get(authorization)
		assert.Equal(t, http.StatusUnauthorized, answer.StatusCode, "%q", authorization)
		assert.Equal(t, "Bearer", answer.Header.Get("WWW-Authenticate"))
		assert.Equal(t, "a bearer token is needed\n", body)
	}
	assert.Zero(t, f.asked, "what carries no token is no question to the API server")

	answer, body := f.get("Bearer made-up")
	assert.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	assert.Equal(t, "the API server does not know the token\n", body)

	nobody := f.token("nobody")
	answer, body = f.get("Bearer " + nobody)
	assert.Equal(t, http.StatusForbidden, answer.StatusCode)
	assert.Equal(t, "system:serviceaccount:"+f.namespace+":nobody may not get /metrics: bind the ClusterRole janus-metrics-reader\n", body)

	elsewhere := f.token("elsewhere")
	f.allow("elsewhere", "/metrics/other")
	reader := f.token("reader")
	f.allow("reader", "/metrics")
	f.awaitAllowed(reader)
	answer, _ = f.get("Bearer " + elsewhere)
	assert.Equal(t, http.StatusForbidden, answer.StatusCode, "the right to another path is none")
	answer, _ = f.get("bearer " + reader)
	assert.Equal(t, http.StatusOK, answer.StatusCode, "the name of the scheme is in any case")
	for _, entry := range f.logs.All() {
		assert.NotContains(t, entry.Message, reader)
	}
}

func TestWhatIsKnownIsNotAskedAgainForAWhile(t *testing.T) {
	f := newFixture(t, unchanged)
	reader := f.token("reader")
	f.allow("reader", "/metrics")
	f.awaitAllowed(reader)
	asked := f.asked
	for range 3 {
		answer, _ := f.get("Bearer " + reader)
		assert.Equal(t, http.StatusOK, answer.StatusCode)
	}
	assert.Equal(t, asked, f.asked)

	// The account goes, and its tokens with it.
	require.NoError(t, f.kube.CoreV1().ServiceAccounts(f.namespace).Delete(t.Context(), "reader", metav1.DeleteOptions{}))
	f.clock.SetTime(f.clock.Now().Add(allowedFor))
	require.Eventually(t, func() bool {
		f.clock.SetTime(f.clock.Now().Add(allowedFor))
		answer, _ := f.get("Bearer " + reader)
		return answer.StatusCode == http.StatusUnauthorized
	}, time.Minute, 50*time.Millisecond, "a token that is withdrawn is good for no longer than it is remembered")
	asked = f.asked
	answer, _ := f.get("Bearer " + reader)
	assert.Equal(t, http.StatusUnauthorized, answer.StatusCode)
	assert.Equal(t, asked, f.asked, "a refusal is remembered, too")
}

// Tokens that are made up become no flood at the API server, and hold up nobody who is known.
func TestAFloodOfTokensIsNoFloodOfQuestions(t *testing.T) {
	f := newFixture(t, unchanged)
	reader := f.token("reader")
	f.allow("reader", "/metrics")
	f.awaitAllowed(reader)
	f.clock.SetTime(f.clock.Now().Add(allowedFor + time.Second)) // It is to be asked about again.
	asked := f.asked
	codes := map[int]int{}
	for i := range 300 {
		answer, _ := f.get(fmt.Sprintf("Bearer made-up-%d", i))
		codes[answer.StatusCode]++
		if answer.StatusCode == http.StatusTooManyRequests {
			assert.Equal(t, "1", answer.Header.Get("Retry-After"))
		}
	}
	assert.Equal(t, map[int]int{http.StatusUnauthorized: suddenly, http.StatusTooManyRequests: 300 - suddenly}, codes)
	assert.Equal(t, suddenly, f.asked-asked)

	answer, body := f.get("Bearer " + reader)
	assert.Equal(t, http.StatusOK, answer.StatusCode, body)
	assert.Equal(t, "the page", body)
	f.clock.SetTime(f.clock.Now().Add(time.Second))
	answer, _ = f.get("Bearer made-up-299")
	assert.Equal(t, http.StatusUnauthorized, answer.StatusCode, "some are asked about each second")
}

func TestWhoCannotBeJudgedIsRefused(t *testing.T) {
	for name, change := range map[string]func(*rest.Config){
		"nobody listens":                func(c *rest.Config) { c.Host = "https://127.0.0.1:1" },
		"the API server refuses to say": func(c *rest.Config) { c.Impersonate.UserName = "somebody-without-rights" },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, change)
			reader := f.token("reader")
			for range 2 {
				answer, body := f.get("Bearer " + reader)
				assert.Equal(t, http.StatusServiceUnavailable, answer.StatusCode)
				assert.Equal(t, unknown.why+"\n", body)
			}
			assert.Equal(t, 2, f.asked, "that the API server does not answer is not remembered")
			logged := f.logs.FilterMessage("a request was refused: the API server does not say whether it may be").All()
			require.Len(t, logged, 2)
			assert.Contains(t, logged[0].ContextMap()["error"], "ask whose a token is: ")
			assert.NotContains(t, logged[0].ContextMap()["error"], reader)
		})
	}
}

func TestATokenMayComeAsAPasswordWhereThatIsSaid(t *testing.T) {
	f := newFixture(t, unchanged)
	viewer := f.token("viewer")
	f.allow("viewer", "/metrics")
	f.awaitAllowed(viewer)
	basic := func(token string) string {
		return "Basic " + base64.StdEncoding.EncodeToString([]byte("anyone:"+token))
	}
	answer, _ := f.get(basic(viewer))
	assert.Equal(t, http.StatusUnauthorized, answer.StatusCode, "programs send bearer tokens")

	f.page.Config.Handler = f.guard.Protect(Access{Path: "/metrics", Password: true},
		http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "the page") }))
	answer, body := f.get(basic(viewer))
	assert.Equal(t, http.StatusOK, answer.StatusCode, body)
	answer, _ = f.get("Bearer " + viewer)
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	for _, wrong := range []string{"", basic(""), basic("made-up"), "Basic " + viewer} {
		answer, _ = f.get(wrong)
		assert.Equal(t, http.StatusUnauthorized, answer.StatusCode, "%q", wrong)
		assert.Len(t, answer.Header.Values("WWW-Authenticate"), 2, "a browser asks its user for a password")
	}
}

// Who may not any more what they could when they asked, gets no more of an answer.
func TestAnAnswerWithoutAnEndIsJudgedAgain(t *testing.T) {
	f := newFixture(t, unchanged)
	reader := f.token("reader")
	f.allow("reader", "/metrics")
	f.awaitAllowed(reader)
	f.guard.lasting = 200 * time.Millisecond
	f.page.Config.Handler = f.guard.Protect(toMetrics, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(30 * time.Second):
		}
		if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
			_, _ = io.WriteString(w, "the end")
		}
	}))
	answer, body := f.get("Bearer " + reader)
	assert.Equal(t, http.StatusOK, answer.StatusCode)
	assert.Equal(t, "the end", body)

	require.NoError(t, f.kube.CoreV1().ServiceAccounts(f.namespace).Delete(t.Context(), "reader", metav1.DeleteOptions{}))
	require.Eventually(t, func() bool {
		f.clock.SetTime(f.clock.Now().Add(allowedFor))
		answer, _ = f.get("Bearer " + reader)
		return answer.StatusCode == http.StatusUnauthorized
	}, time.Minute, 50*time.Millisecond)
}
