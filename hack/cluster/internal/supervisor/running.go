package supervisor

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// run starts one component and publishes its process id.
func (s *supervisor) run(c component) error {
	logs, prefix, err := s.logFor(c.name)
	if err != nil {
		return err
	}
	p, err := startProcess(c, s.layout.dir, logs, prefix, s.exits)
	if err != nil {
		return err
	}
	s.running = append(s.running, p)
	return s.publish()
}

// publish writes pids.json.
func (s *supervisor) publish() error {
	pids := map[string]int{"supervisor": os.Getpid()}
	for _, p := range s.running {
		pids[p.component.name] = p.pid()
	}
	return writeJSON(s.layout.pids(), pids)
}

// forget takes a process that has ended off the list.
func (s *supervisor) forget(ended *process) {
	kept := s.running[:0]
	for _, p := range s.running {
		if p != ended {
			kept = append(kept, p)
		}
	}
	s.running = kept
}

// logFor returns where a component's output goes and how lines begin there.
func (s *supervisor) logFor(name string) (io.Writer, string, error) {
	if s.options.LogDir == "" {
		return s.stderr, name + ": ", nil
	}
	if open, ok := s.logs[name]; ok {
		return open, "", nil
	}
	path := filepath.Join(s.options.LogDir, name+".log")
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, "", fmt.Errorf("open the log of %s: %w", name, err)
	}
	s.logs[name] = file
	return file, "", nil
}
