package main

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// withImage hands the image of a release to a function.
func (r *release) withImage(do func(v1.ImageIndex) error) error {
	return withLayout(r.path(r.layout()), do)
}

// withLayout unpacks an OCI layout and hands the one index in it to a function.
func withLayout(archive string, do func(v1.ImageIndex) error) error {
	dir, err := os.MkdirTemp("", "janus-verify-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := unpack(archive, dir); err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	top, err := layout.ImageIndexFromPath(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	manifest, err := top.IndexManifest()
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	if len(manifest.Manifests) != 1 {
		return fmt.Errorf("%s has %d images, and not one", filepath.Base(archive), len(manifest.Manifests))
	}
	index, err := top.ImageIndex(manifest.Manifests[0].Digest)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(archive), err)
	}
	return do(index)
}

// unpack unpacks the regular files of a tar.
func unpack(archive, dir string) error {
	in, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	for files := tar.NewReader(in); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if header.Typeflag != tar.TypeReg {
			continue
		}
		content, err := io.ReadAll(files)
		if err == nil {
			err = root.MkdirAll(filepath.Dir(filepath.Clean(header.Name)), 0o755)
		}
		if err == nil {
			err = root.WriteFile(filepath.Clean(header.Name), content, 0o600)
		}
		if err != nil {
			return err
		}
	}
}
