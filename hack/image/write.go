package main

import (
	"archive/tar"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
)

// refName is the annotation by which tools find a tag in a layout.
const refName = "org.opencontainers.image.ref.name"

// write puts the layout at output. It is made beside it and moved there when it
// is complete, so that a build that fails leaves the one before.
func write(index v1.ImageIndex, tag, output string) (err error) {
	parent := filepath.Dir(output)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return err
	}
	work, err := os.MkdirTemp(parent, ".image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()

	made := filepath.Join(work, "layout")
	if err := writeLayout(index, tag, made); err != nil {
		return err
	}
	if strings.HasSuffix(output, ".tar") {
		archive := filepath.Join(work, "layout.tar")
		if err := pack(made, archive); err != nil {
			return err
		}
		return os.Rename(archive, output)
	}
	if err := removeLayout(output); err != nil {
		return err
	}
	return os.Rename(made, output)
}

func writeLayout(index v1.ImageIndex, tag, dir string) error {
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	return path.AppendIndex(index, layout.WithAnnotations(map[string]string{refName: tag}))
}

// errNoLayout protects what a mistyped output names.
var errNoLayout = errors.New("there is something else than an image layout")

// removeLayout removes a layout of an earlier build, and nothing else.
func removeLayout(dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(dir, "oci-layout")); err != nil && len(entries) > 0 {
		return errNoLayout
	}
	return os.RemoveAll(dir)
}

// pack writes a directory as a tar, in the order of names and without times.
func pack(dir, archive string) (err error) {
	file, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	w := tar.NewWriter(file)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || path == dir {
			return err
		}
		return packEntry(w, dir, path, entry)
	})
	return errors.Join(err, w.Close())
}

func packEntry(w *tar.Writer, dir, path string, entry fs.DirEntry) error {
	name, err := filepath.Rel(dir, path)
	if err != nil {
		return err
	}
	if entry.IsDir() {
		return w.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: filepath.ToSlash(name) + "/", Mode: 0o755, ModTime: epoch, Format: tar.FormatUSTAR})
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	err = w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: filepath.ToSlash(name), Size: info.Size(), Mode: 0o644, ModTime: epoch, Format: tar.FormatUSTAR,
	})
	if err != nil {
		return err
	}
	_, err = io.Copy(w, file)
	return err
}
