package harness

import "janus.io/janus/test/oracle"

// Seen returns the versions in the namespaces that the watches have told of so far, and
// with "" those of what belongs to no namespace. Unlike History it does not wait: the
// caller knows what must be among them.
func (w *Watcher) Seen(namespaces ...string) oracle.History {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out oracle.History
	for _, ns := range namespaces {
		out = append(out, w.histories[ns]...)
	}
	return out
}
