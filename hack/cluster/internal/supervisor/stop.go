package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"
)

// stop ends every component: first the clients of the API server, together,
// then the API server, then etcd. It returns when all are gone.
func (s *supervisor) stop() error {
	var clients, api, store []*process
	for _, p := range s.running {
		switch p.component.name {
		case etcd:
			store = append(store, p)
		case apiServer:
			api = append(api, p)
		default:
			clients = append(clients, p)
		}
	}
	grace := stopGrace
	if len(store) == 0 {
		// Without its store the API server would hang until it is killed.
		grace = 0
	}
	began := s.elapsed()
	errs := []error{
		s.stopTogether(clients, stopGrace),
		s.stopTogether(api, grace),
		s.stopTogether(store, stopGrace),
	}
	s.running = nil
	errs = append(errs, s.closeLogs())
	for _, path := range []string{s.kubeconfigPath(), s.layout.pids()} {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("remove %s: %w", path, err))
		}
	}
	s.say("stopped (%.1f s)", s.elapsed()-began)
	return errors.Join(errs...)
}

// stopTogether stops the processes at the same time. One that does not end
// within the grace period is killed.
func (s *supervisor) stopTogether(group []*process, grace time.Duration) error {
	errs := make([]error, len(group))
	killed := make([]bool, len(group))
	var wg sync.WaitGroup
	for i, p := range group {
		wg.Go(func() { killed[i], errs[i] = p.stop(grace) })
	}
	wg.Wait()
	for i, p := range group {
		if killed[i] {
			s.say("%s had to be killed, it did not end in %s", p.component.name, grace)
		}
	}
	return errors.Join(errs...)
}

// closeLogs closes the log files.
func (s *supervisor) closeLogs() error {
	var errs []error
	for name, file := range s.logs {
		if err := file.Close(); err != nil {
			errs = append(errs, fmt.Errorf("close the log of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
