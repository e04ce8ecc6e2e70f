package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"path/filepath"
	"syscall"

	"janus.io/janus/test/testcluster"
)

// shared is a control plane that all packages of a step use.
type shared struct {
	*testcluster.Cluster
	lock *os.File
}

// share starts one and returns the value of the environment variable by which tests find it.
// That is the same in every run, so that go can tell that nothing has changed.
func (r *runner) share() (*shared, string, error) {
	sum := fnv.New64a()
	_, _ = sum.Write([]byte(r.root))
	link := filepath.Join(os.TempDir(), fmt.Sprintf("janus-tests-%x", sum.Sum64()))
	s := &shared{}
	var err error
	if s.lock, err = lock(link + ".lock"); err != nil {
		return nil, "", err
	}
	_, _ = fmt.Fprintln(r.out, "==> starting a control plane that the packages share")
	s.Cluster, err = testcluster.Start(testcluster.Options{
		ControllerManager: true, Audit: true, CRDs: filepath.Join(r.root, "deploy", "crd"),
	})
	if err != nil {
		return nil, "", errors.Join(err, s.Stop())
	}
	dir, err := s.Offer()
	if err == nil {
		err = errors.Join(remove(link), os.Symlink(dir, link))
	}
	if err != nil {
		return nil, "", errors.Join(err, s.Stop())
	}
	return s, link, nil
}

// Stop ends it.
func (s *shared) Stop() error {
	var errs []error
	if s.Cluster != nil {
		errs = append(errs, s.Cluster.Stop())
	}
	return errors.Join(append(errs, s.lock.Close())...)
}

// lock is for one run at a time in a checkout. It ends with the process.
func lock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("the tests of this checkout run already: %w", err), file.Close())
	}
	return file, nil
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
