package processes

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// counts are what a test reports at its end.
type counts struct {
	mu    sync.Mutex
	names []string
	of    map[string]int
}

func (c *counts) add(name string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.of == nil {
		c.of = map[string]int{}
	}
	if !slices.Contains(c.names, name) {
		c.names = append(c.names, name)
	}
	c.of[name] += n
}

// most keeps the largest of some numbers.
func (c *counts) most(name string, n int) {
	c.add(name, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.of[name] = max(c.of[name], n)
}

// table is one line for each count.
func (c *counts) table() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var b strings.Builder
	for _, name := range slices.Sorted(slices.Values(c.names)) {
		fmt.Fprintf(&b, "\n  %-44s %7d", name, c.of[name])
	}
	return b.String()
}
