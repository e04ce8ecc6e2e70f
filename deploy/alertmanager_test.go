package deploy_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// Every alert goes to those whom its severity is for.
func TestTheExampleForAlertmanagerRoutesEveryAlert(t *testing.T) {
	amtool := monitoringProgram(t, "amtool")
	run := func(args ...string) string {
		command := exec.CommandContext(t.Context(), amtool, args...)
		command.Dir = "../examples/alertmanager"
		var said bytes.Buffer
		command.Stderr = &said
		out, err := command.Output()
		require.NoError(t, err, "%s%s", out, said.Bytes())
		return strings.TrimSpace(string(out))
	}
	run("check-config", "alertmanager.yaml")
	for _, group := range alertRules(t) {
		for _, r := range group.Rules {
			want := map[string]string{"critical": "janus-on-call", "warning": "janus-chat"}[r.Labels["severity"]]
			assert.Equal(t, want, run("config", "routes", "test", "--config.file=alertmanager.yaml", "alertname="+r.Alert, "severity="+r.Labels["severity"]), r.Alert)
		}
	}
	assert.Equal(t, "others", run("config", "routes", "test", "--config.file=alertmanager.yaml", "alertname=Watchdog", "severity=critical"))
}

// alertmanager starts one with the example, whose receivers are at a URL, and returns its address.
func alertmanager(t *testing.T, receiver string) string {
	t.Helper()
	dir := t.TempDir()
	config := readFile(t, "../examples/alertmanager/alertmanager.yaml")
	for _, at := range []string{"http://on-call.example.com/alerts", "http://chat.example.com/hooks/janus"} {
		require.Contains(t, config, at)
		config = strings.ReplaceAll(config, at, receiver)
	}
	config = strings.ReplaceAll(config, "group_wait: 30s", "group_wait: 1s")
	require.NoError(t, os.WriteFile(filepath.Join(dir, "alertmanager.yaml"), []byte(config), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "janus.tmpl"), []byte(readFile(t, "../examples/alertmanager/janus.tmpl")), 0o600))
	address := freeAddress(t)
	p := harness.RunProgram(t, exec.Command(monitoringProgram(t, "prometheus-alertmanager"), "--config.file="+dir+"/alertmanager.yaml",
		"--storage.path="+dir+"/data", "--web.listen-address="+address, "--cluster.listen-address="))
	t.Cleanup(func() { endProgram(p) })
	require.Eventually(t, func() bool { return isReady(t, address) }, settle, poll, "Alertmanager is ready: %s", p.Log())
	return address
}

// chat takes what Alertmanager sends to one.
type chat struct {
	*httptest.Server
	t    *testing.T
	sent chan message
	last message
}

type message struct {
	Attachments []struct{ Title, Text string }
}

func newChat(t *testing.T) *chat {
	t.Helper()
	c := &chat{t: t, sent: make(chan message, 100)}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var m message
		if json.NewDecoder(bytes.NewReader(body)).Decode(&m) == nil && len(m.Attachments) > 0 {
			c.sent <- m
		}
		_, _ = w.Write([]byte("ok"))
	}))
	t.Cleanup(c.Close)
	return c
}

// title waits for the next message, and returns its title.
func (c *chat) title() string {
	c.t.Helper()
	select {
	case c.last = <-c.sent:
		return c.last.Attachments[0].Title
	case <-time.After(time.Minute):
		require.Fail(c.t, "nothing has reached the chat")
		return ""
	}
}

// text is that of the last message.
func (c *chat) text() string { return c.last.Attachments[0].Text }
