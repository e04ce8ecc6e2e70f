package bundle

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"janus.io/janus/internal/errclass"
)

// Limits of an artifact.
const (
	maxBytes = 256 << 20 // compressed, and unpacked
	maxFiles = 10_000
)

var (
	errTooLarge = fmt.Errorf("it takes more than %d bytes", maxBytes)
	errTooMany  = fmt.Errorf("it has more than %d files", maxFiles)
	errGzip     = errors.New("a layer is compressed by gzip, and is truncated or damaged")
	errZstd     = errors.New("a layer is compressed by zstd, which is not supported: push it with gzip")
	errTar      = errors.New("a layer is a tar archive, and is truncated or damaged")
)

// unpacking collects the manifests of layers.
type unpacking struct {
	limit          int64 // of what is read, and of what is unpacked
	read, unpacked int64
	files          []File
}

// add unpacks a layer: a tar archive or one file, plain or compressed.
func (u *unpacking) add(title string, data []byte) error {
	before := u.unpacked
	if bytes.HasPrefix(data, []byte{0x1f, 0x8b}) {
		r, err := gzip.NewReader(bytes.NewReader(data))
		if err != nil {
			return errGzip
		}
		if data, err = u.limited(r, errGzip); err != nil {
			return err
		}
		title = strings.TrimSuffix(title, ".gz")
	}
	if bytes.HasPrefix(data, []byte{0x28, 0xb5, 0x2f, 0xfd}) {
		return errZstd
	}
	if len(data) > 262 && string(data[257:262]) == "ustar" {
		// Its files count in its place. Sparse ones may take more.
		u.unpacked = before
		return u.archive(data)
	}
	return u.file(title, data)
}

func (u *unpacking) archive(data []byte) error {
	r := tar.NewReader(bytes.NewReader(data))
	for {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return errTar
		}
		if header.Typeflag != tar.TypeReg || !isManifest(header.Name) {
			continue
		}
		text, err := u.limited(r, errTar)
		if err != nil {
			return err
		}
		if err := u.file(header.Name, text); err != nil {
			return err
		}
	}
}

// limited reads no more than an artifact may still take.
func (u *unpacking) limited(r io.Reader, broken error) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, u.limit-u.unpacked+1))
	if u.unpacked += int64(len(data)); u.unpacked > u.limit {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, broken
	}
	return data, nil
}

func (u *unpacking) file(name string, data []byte) error {
	// The name is shown, and opened nowhere.
	name = strings.TrimPrefix(path.Clean("/"+errclass.OneLine(name)), "/")
	switch {
	case !isManifest(name):
		return nil
	case strings.TrimSuffix(path.Base(name), path.Ext(name)) == "kustomization":
		return fmt.Errorf("it has a %s: pull it into a directory, and use -k", path.Base(name))
	case len(u.files) == maxFiles:
		return errTooMany
	}
	u.files = append(u.files, File{Path: name, Data: data})
	return nil
}

// isManifest reports whether a file has manifests, by its name. What macOS and tar put beside
// files has not.
func isManifest(name string) bool {
	base := path.Base(name)
	switch path.Ext(base) {
	case ".yaml", ".yml", ".json":
		return !strings.HasPrefix(base, ".")
	}
	return false
}
