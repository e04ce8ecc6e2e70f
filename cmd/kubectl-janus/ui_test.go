package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/ui"
	"janus.io/janus/test/harness"
	"janus.io/janus/test/testcluster"
)

// startUI runs kubectl janus ui until the test ends, and returns the address that it prints.
func startUI(t *testing.T, args ...string) (address string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var said bytes.Buffer
	ended := make(chan int, 1)
	args = append([]string{"ui", "--kubeconfig", testcluster.Shared(t).Kubeconfig}, args...)
	go func() {
		ended <- start(ctx, args, genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: in, ErrOut: &said})
		_ = in.Close()
	}()
	address, err := bufio.NewReader(out).ReadString('\n')
	t.Cleanup(func() {
		cancel()
		select {
		case code := <-ended:
			assert.Zero(t, code, "the code with which it ends when it is asked to")
		case <-time.After(20 * time.Second):
			t.Error("it does not end when it is asked to")
		}
	})
	require.NoError(t, err)
	return strings.TrimSpace(address)
}

func fetch(t *testing.T, url string) (code int, body io.Reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	require.NoError(t, err)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	t.Cleanup(func() { _ = answer.Body.Close() })
	return answer.StatusCode, answer.Body
}

func codeOf(t *testing.T, url string) int {
	t.Helper()
	code, _ := fetch(t, url)
	return code
}

func read[T any](t *testing.T, url string) (content T) {
	t.Helper()
	code, body := fetch(t, url)
	require.Equal(t, http.StatusOK, code, url)
	require.NoError(t, json.NewDecoder(body).Decode(&content))
	return content
}

// untilPhase reads a stream until it has told that a Transaction is in a phase.
func untilPhase(t *testing.T, stream *bufio.Scanner, name string, phase api.Phase) {
	t.Helper()
	for stream.Scan() {
		data, found := strings.CutPrefix(stream.Text(), "data: ")
		var s ui.Summary
		if found && json.Unmarshal([]byte(data), &s) == nil && s.Name == name && s.Phase == string(phase) {
			return
		}
	}
	require.FailNow(t, "the stream has ended", "Transaction %s is not %s", name, phase)
}

const twoSteps = `
revisionHistoryLimit: 10
changes:
- name: config
  type: Create
  target: {apiVersion: v1, kind: ConfigMap, name: settings}
  content: {data: {size: "1"}}
- name: key
  type: Create
  target: {apiVersion: v1, kind: Secret, name: key}
  content: {stringData: {password: hunter2}}
  dependsOn: [config]
  readyWhen: {expression: "has(object.data.confirmed)", timeout: 4m}
`

func TestTheUIShowsATransactionAsItRuns(t *testing.T) {
	e := harness.New(t)
	e.Start()
	address := startUI(t, "--namespace", e.Namespace)
	require.Regexp(t, `^http://127\.0\.0\.1:[0-9]+/[A-Z2-7]{26}/$`, address)
	_, told := fetch(t, address+"api/stream")
	stream := bufio.NewScanner(told)

	e.Submit("runs", twoSteps)
	untilPhase(t, stream, "runs", api.PhaseCommitting)
	one := address + "api/transactions/" + e.Namespace + "/runs"
	require.Eventually(t, func() bool {
		d := read[ui.Detail](t, one)
		return d.Items[1].Wait != nil && d.Items[1].Wait.For != ""
	}, time.Minute, 500*time.Millisecond)
	d := read[ui.Detail](t, one)
	assert.Equal(t, []string{"Committed", "Waiting"}, []string{d.Items[0].State, d.Items[1].State})
	assert.Equal(t, []int{1, 1, 2}, []int{d.Done, d.Waiting, d.Total})
	assert.Equal(t, int64(240), d.Wait.Limit)
	assert.Equal(t, []string{".stringData.password"}, d.Items[1].Fields)
	require.Len(t, d.Locks, 2)
	for _, l := range d.Locks {
		assert.True(t, l.Ours, "the lock %s is that of the Transaction", l.Lease)
		assert.Equal(t, e.Namespace+"/runs", l.Holder)
		assert.NotEmpty(t, l.Renewed)
	}

	e.Submit("waits", strings.ReplaceAll(twoSteps, "Create", "Patch"))
	e.Await("waits", "a lock", func(x *api.Transaction) bool {
		_, reason, _ := reasonOf(x)
		return reason == "LockHeld"
	})
	assert.Equal(t, []string{e.Namespace + "/waits"}, read[ui.Detail](t, one).Locks[0].Waiting)

	e.Merge("tester", "Secret/key", `{"stringData": {"confirmed": "yes"}}`)
	untilPhase(t, stream, "runs", api.PhaseCommitted)
	e.AwaitEvent("runs", "Committed")
	d = read[ui.Detail](t, one)
	assert.Equal(t, "Committed", d.Phase)
	assert.Empty(t, d.Locks)
	assert.Empty(t, d.Unread)
	require.NotEmpty(t, d.Events)
	_, body := fetch(t, one)
	text, err := io.ReadAll(body)
	require.NoError(t, err)
	require.Contains(t, string(text), "password")
	assert.NotContains(t, string(text), "hunter2")

	_, body = fetch(t, one+"/differences")
	text, err = io.ReadAll(body)
	require.NoError(t, err)
	for _, secret := range []string{"hunter2", "aHVudGVyMg"} {
		assert.NotContains(t, string(text), secret)
	}
	var changed []ui.Changed
	require.NoError(t, json.Unmarshal(text, &changed))
	require.Len(t, changed, 2)
	assert.Equal(t, ui.Changed{Name: "config", Fields: []ui.Difference{{Field: ".data.size", After: `"1"`}}}, changed[0])
	require.NotEmpty(t, changed[1].Fields)
	for _, f := range changed[1].Fields {
		assert.Equal(t, "***", f.After)
	}
}

// A person who holds a lock is named to those who wait for it.
func TestTheUISaysWhoHoldsALockByHand(t *testing.T) {
	e := harness.New(t)
	e.Start()
	e.Apply("{apiVersion: v1, kind: ConfigMap, metadata: {name: settings}}")
	var said bytes.Buffer
	code := start(t.Context(), []string{
		"locks", "hold", "configmap/settings", "--for", "10m", "--holder", "alice", "--namespace", e.Namespace, "--kubeconfig", testcluster.Shared(t).Kubeconfig,
	}, genericiooptions.IOStreams{In: &said, Out: &said, ErrOut: &said})
	require.Zero(t, code, said.String())
	e.Submit("blocked", "changes: [{type: Patch, target: {apiVersion: v1, kind: ConfigMap, name: settings}, content: {data: {a: b}}}]")
	e.Await("blocked", "waiting for the lock", func(x *api.Transaction) bool {
		_, reason, _ := reasonOf(x)
		return reason == "LockHeld"
	})
	address := startUI(t, "blocked", "--namespace", e.Namespace)
	page, fragment, found := strings.Cut(address, "#")
	require.True(t, found)
	assert.Equal(t, e.Namespace+"/blocked", fragment, "the address is that of the Transaction")
	d := read[ui.Detail](t, page+"api/transactions/"+fragment)
	assert.Equal(t, "Waiting", d.State)
	require.Len(t, d.Locks, 1)
	assert.Equal(t, "alice", d.Locks[0].Holder)
	assert.Equal(t, []string{"0"}, d.Locks[0].Items)
	assert.NotEmpty(t, d.Locks[0].Held)
	require.Len(t, d.Waits, 1)
	assert.Contains(t, d.Waits[0].For, "held by alice")
	assert.NotEmpty(t, d.Waits[0].Since)
}

func TestTheUIShowsItsNamespaceAlone(t *testing.T) {
	here, there := harness.New(t), harness.New(t)
	here.Submit("here", twoSteps)
	there.Submit("there", twoSteps)
	names := func(address string) (out []string) {
		for _, s := range read[[]ui.Summary](t, address+"api/transactions") {
			if s.Namespace == here.Namespace || s.Namespace == there.Namespace {
				out = append(out, s.Name)
			}
		}
		return out
	}
	scoped := startUI(t, "--namespace", here.Namespace)
	assert.Equal(t, []string{"here"}, names(scoped))
	assert.Equal(t, http.StatusNotFound, codeOf(t, scoped+"api/transactions/"+there.Namespace+"/there"))
	wide := startUI(t, "--namespace", here.Namespace, "-A")
	assert.ElementsMatch(t, []string{"here", "there"}, names(wide))
	assert.Equal(t, http.StatusOK, codeOf(t, wide+"api/transactions/"+there.Namespace+"/there"))
}

func TestTheUIIsForTheUserOfThisMachineAlone(t *testing.T) {
	e := harness.New(t)
	address := startUI(t, "--namespace", e.Namespace)
	base, _, _ := strings.Cut(strings.TrimPrefix(address, "http://"), "/")
	assert.Equal(t, http.StatusOK, codeOf(t, address))
	assert.Equal(t, http.StatusNotFound, codeOf(t, "http://"+base+"/"))
	assert.Equal(t, http.StatusNotFound, codeOf(t, "http://"+base+"/api/transactions"))
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, nil)
	require.NoError(t, err)
	r.Host = "rebound.example"
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	assert.Equal(t, http.StatusForbidden, answer.StatusCode)
}

func TestTheUIListensOnLoopbackAlone(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":8080", "[::]:0", "192.0.2.1:80", "example.com:80", "127.0.0.1", ""} {
		var said bytes.Buffer
		code := start(t.Context(), []string{"ui", "--address", address}, genericiooptions.IOStreams{In: &said, Out: &said, ErrOut: &said})
		assert.Equal(t, 1, code, address)
		assert.Contains(t, said.String(), "--address", address)
	}
}
