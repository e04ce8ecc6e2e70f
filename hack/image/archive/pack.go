package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"janus.io/janus/hack/image/internal/program"
)

// epoch is the time of every file: a real one would make other archives each time. It is
// the first that a zip can tell.
var epoch = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// archive is one that was written.
type archive struct {
	platform program.Platform
	// file is its name, and program that of the plugin in it.
	file, program string
	sha256        string
	// content are the names of all files in it, in order.
	content []string
}

// entry is a file that goes into an archive.
type entry struct {
	name    string
	mode    fs.FileMode
	content []byte
}

// pack writes the archive of a program.
func pack(o options, p program.Program) (archive, error) {
	a := archive{platform: p.Platform, program: o.Name}
	a.file = o.Name + "_" + o.Version + "_" + p.Platform.OS + "_" + p.Platform.Arch
	write := tarball
	if p.Platform.OS == "windows" {
		a.program += ".exe"
		write = zipped
		a.file += ".zip"
	} else {
		a.file += ".tar.gz"
	}
	entries, err := entriesOf(a.program, p.Path, o.with)
	if err != nil {
		return archive{}, err
	}
	var out bytes.Buffer
	if err := write(&out, entries); err != nil {
		return archive{}, err
	}
	for _, e := range entries {
		a.content = append(a.content, e.name)
	}
	sum := sha256.Sum256(out.Bytes())
	a.sha256 = hex.EncodeToString(sum[:])
	return a, os.WriteFile(filepath.Join(o.output, a.file), out.Bytes(), 0o644)
}

// entriesOf are the program and what goes with it, in the order of their names. Of the
// modes of files only that one may be executed is kept: the rest is up to a checkout.
func entriesOf(name, path string, with []string) ([]entry, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	entries := []entry{{name: name, mode: 0o755, content: content}}
	for _, file := range with {
		info, err := os.Stat(file)
		if err != nil {
			return nil, err
		}
		content, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		mode := fs.FileMode(0o644)
		if info.Mode()&0o100 != 0 {
			mode = 0o755
		}
		entries = append(entries, entry{name: filepath.Base(file), mode: mode, content: content})
	}
	slices.SortFunc(entries, func(a, b entry) int { return cmp.Compare(a.name, b.name) })
	return entries, nil
}

func tarball(out io.Writer, entries []entry) error {
	compressed := gzip.NewWriter(out)
	w := tar.NewWriter(compressed)
	for _, e := range entries {
		err := w.WriteHeader(&tar.Header{
			Typeflag: tar.TypeReg, Name: e.name, Size: int64(len(e.content)), Mode: int64(e.mode), ModTime: epoch, Format: tar.FormatUSTAR,
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(e.content); err != nil {
			return err
		}
	}
	return errors.Join(w.Close(), compressed.Close())
}

func zipped(out io.Writer, entries []entry) error {
	w := zip.NewWriter(out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: epoch}
		header.SetMode(e.mode)
		file, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := file.Write(e.content); err != nil {
			return err
		}
	}
	return w.Close()
}
