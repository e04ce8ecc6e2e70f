package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// tryTampered changes a byte in the middle of each file of a copy of the release, one after the
// other, and checks that copy. The registry is left out: it has the files of the good release.
func (o options) tryTampered(ctx context.Context, t *trust, out io.Writer) error {
	dir, err := os.MkdirTemp("", "janus-tampered-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	good, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(good)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		// The others need not be copied to be the same.
		if err := root.Symlink(filepath.Join(good, entry.Name()), entry.Name()); err != nil {
			return err
		}
	}
	tampered := o
	tampered.dir, tampered.images, tampered.charts = dir, nil, nil
	var errs []error
	for _, entry := range entries {
		if err := ctx.Err(); err != nil {
			return err
		}
		errs = append(errs, tampered.tryOne(t, root, filepath.Join(good, entry.Name())))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "ok   a changed byte in any of %d files is noticed\n", len(entries))
	return err
}

// tryOne checks the copy with one file changed, and restores that.
func (o options) tryOne(t *trust, root *os.Root, good string) error {
	content, err := os.ReadFile(good)
	if err != nil {
		return err
	}
	content[len(content)/2] ^= 1
	name := filepath.Base(good)
	if err := errors.Join(root.Remove(name), root.WriteFile(name, content, 0o600)); err != nil {
		return err
	}
	if o.check(t, io.Discard) == nil {
		err = fmt.Errorf("%s: a changed byte was not noticed", name)
	}
	return errors.Join(err, root.Remove(name), root.Symlink(good, name))
}
