package registries

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestThePauseThatARegistryAsksFor(t *testing.T) {
	const date = "Thu, 26 Nov 2026 10:00:00 GMT"
	for text, want := range map[string]time.Duration{
		"":                              0,
		"7":                             7 * time.Second,
		"-7":                            0,
		"soon":                          0,
		"99999999999999999999":          0,
		"Thu, 26 Nov 2026 10:01:30 GMT": 90 * time.Second,
		"Thu, 26 Nov 2026 09:00:00 GMT": 0,
	} {
		assert.Equal(t, want, retryAfter(http.Header{"Retry-After": {text}, "Date": {date}}), text)
	}
	assert.Zero(t, retryAfter(http.Header{"Retry-After": {date}}), "by which clock?")
}
