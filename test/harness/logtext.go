package harness

import (
	"strings"
	"sync"
)

// LogText keeps what is logged. It may be used concurrently.
type LogText struct {
	mu   sync.Mutex
	text strings.Builder
}

// Write implements io.Writer.
func (l *LogText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Sync implements zapcore.WriteSyncer.
func (l *LogText) Sync() error { return nil }

func (l *LogText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}
