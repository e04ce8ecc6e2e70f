package supervisor

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// tailLines is how much of its log a failed component is reported with.
const tailLines = 25

// logTail passes whole lines of a component's output on and remembers the last
// ones, which explain why a component ended.
type logTail struct {
	mu      sync.Mutex
	out     io.Writer
	prefix  string
	partial []byte
	lines   []string
}

// Write never fails: a log that cannot be written must not stop a component.
func (l *logTail) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.partial = append(l.partial, p...)
	for {
		end := bytes.IndexByte(l.partial, '\n')
		if end < 0 {
			return len(p), nil
		}
		l.line(string(l.partial[:end]))
		l.partial = l.partial[end+1:]
	}
}

func (l *logTail) line(s string) {
	_, _ = fmt.Fprintf(l.out, "%s%s\n", l.prefix, s)
	l.lines = append(l.lines, s)
	if len(l.lines) > tailLines {
		l.lines = l.lines[1:]
	}
}

// last returns the last lines, including one that has no end yet.
func (l *logTail) last() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := append([]string(nil), l.lines...)
	if len(l.partial) > 0 {
		lines = append(lines, string(l.partial))
	}
	return lines
}

// lockedWriter lets several components share one stream.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}
