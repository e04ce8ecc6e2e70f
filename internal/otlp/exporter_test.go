package otlp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/utils/clock"
)

func TestThePasswordOfACollectorIsSentAndNotShown(t *testing.T) {
	asked := make(chan string, 1)
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, password, _ := r.BasicAuth()
		asked <- r.URL.Path + " " + password
		w.WriteHeader(http.StatusBadRequest)
	}))
	defer collector.Close()
	endpoint, err := Endpoint(strings.Replace(collector.URL, "http://", "http://user:hunter2@", 1))
	require.NoError(t, err)

	var log strings.Builder
	e := NewExporter(endpoint, nil, clock.RealClock{}, zap.New(zapcore.NewCore(
		zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(&log), zap.DebugLevel)))
	e.send(t.Context(), nil)
	assert.Equal(t, "/v1/traces hunter2", <-asked)
	collector.Close()
	_, err = e.post(t.Context(), nil)
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "hunter2", "of a collector that is away")
	for range queued + 1 {
		e.Export(nil)
	}
	assert.NotContains(t, log.String(), "hunter2")
	assert.Equal(t, 2, strings.Count(log.String(), "user:xxxxx@"), "where the password was: %s", log.String())
}

func TestAnEndpointIsAURLToSendTo(t *testing.T) {
	for text, want := range map[string]string{
		"http://c:4318":            "http://c:4318/v1/traces",
		"https://c/":               "https://c/v1/traces",
		"https://user@c/other?x=y": "https://user@c/other?x=y",
	} {
		u, err := Endpoint(text)
		require.NoError(t, err)
		assert.Equal(t, want, u.String())
	}
	for _, text := range []string{"", "c:4318", "ftp://c", "http://", "user:hunter2@c", "https://user:hunter2@c:port", "https://user:hunter/2@c"} {
		_, err := Endpoint(text)
		require.EqualError(t, err, "want a URL such as http://collector.monitoring:4318", text)
	}
}
