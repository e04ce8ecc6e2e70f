package image

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"path"
	"strings"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
)

// streamFile is the file with the package, and annotation that of the layer with that file.
const (
	streamFile      = "package.yaml"
	annotation      = "io.crossplane.xpkg"
	annotationValue = "base"
)

// stream returns the content of package.yaml: that in the annotated layer, or else that in the
// file system of the image.
func (r reading) stream(ctx context.Context, manifest ocispec.Manifest) ([]byte, error) {
	var base []ocispec.Descriptor
	for _, layer := range manifest.Layers {
		if layer.Annotations[annotation] == annotationValue {
			base = append(base, layer)
		}
	}
	if len(base) > 1 {
		return nil, r.refuse(InvalidPackage, "%d of its layers are annotated as %s, and one may be", len(base), annotationValue)
	}
	if len(base) == 0 {
		// What a later layer has or has removed hides what an earlier one has.
		for i := len(manifest.Layers) - 1; i >= 0; i-- {
			base = append(base, manifest.Layers[i])
		}
	}
	left, hidden := int64(maxLayer), hiding{}
	for _, layer := range base {
		if layer.Size < 0 || layer.Size > left {
			return nil, r.refuse(TooLarge, "its layers take more than %d bytes", maxLayer)
		}
		left -= layer.Size
		data, err := r.layer(ctx, layer, hidden)
		if err != nil || data != nil {
			return data, err
		}
	}
	return nil, r.refuse(InvalidPackage, "it has no file %s", streamFile)
}

// layer returns the content of package.yaml of one layer, if it has one. It reads all of the
// layer, and so knows that it is what its digest says.
func (r reading) layer(ctx context.Context, layer ocispec.Descriptor, hidden hiding) ([]byte, error) {
	what := "layer " + layer.Digest.String()
	body, err := r.repo.Blobs().Fetch(ctx, layer)
	if err != nil {
		return nil, r.explain(what, err)
	}
	defer func() { _ = body.Close() }()
	verified := content.NewVerifyReader(body, layer)
	found, damage := r.unpack(verified, hidden)
	if _, err := io.Copy(io.Discard, verified); err != nil {
		return nil, r.explain(what, err)
	}
	if err := verified.Verify(); err != nil {
		return nil, r.explain(what, err)
	}
	// What is wrong with a layer that is not what its digest says is no news.
	return found, damage
}

// unpack looks for package.yaml in a layer, plain or compressed by gzip.
func (r reading) unpack(layer io.Reader, hidden hiding) ([]byte, error) {
	buffered := bufio.NewReader(layer)
	var plain io.Reader = buffered
	switch magic, _ := buffered.Peek(4); {
	case strings.HasPrefix(string(magic), "\x1f\x8b"):
		unzipped, err := gzip.NewReader(buffered)
		if err != nil {
			return nil, r.refuse(InvalidPackage, "a layer is damaged: it is no gzip")
		}
		plain = unzipped
	case string(magic) == "\x28\xb5\x2f\xfd":
		return nil, r.refuse(InvalidPackage, "a layer is compressed by zstd, which is not supported: build the package with gzip")
	}
	// As much as Crossplane reads of the file, as often as a layer may have other files.
	limited := &io.LimitedReader{R: plain, N: 4 * maxStream}
	archive := tar.NewReader(limited)
	seen, names := hiding{}, hidden.size()
	for {
		header, err := archive.Next()
		switch {
		case errors.Is(err, io.EOF):
			hidden.add(seen)
			return nil, nil
		case err != nil && limited.N <= 0:
			return nil, r.refuse(TooLarge, "a layer unpacks to more than %d bytes", 4*maxStream)
		case err != nil:
			return nil, r.refuse(InvalidPackage, "a layer is no tar archive, or is truncated")
		}
		file := path.Clean("/" + header.Name)
		if names += len(file); names > maxNames || len(seen)+len(hidden) > 2*maxPaths {
			return nil, r.refuse(TooLarge, "it has more than %d files, or their paths take more than %d bytes", maxPaths, maxNames)
		}
		if !seen.entry(file, header.Typeflag) || hidden.has(file) || path.Base(file) != streamFile {
			continue
		}
		if header.Typeflag != tar.TypeReg {
			return nil, r.refuse(InvalidPackage, "%s is no regular file", file)
		}
		data, err := io.ReadAll(io.LimitReader(archive, r.max+1))
		switch {
		case int64(len(data)) > r.max:
			return nil, r.refuse(TooLarge, "%s takes more than %d bytes", file, r.max)
		case err != nil:
			return nil, r.refuse(InvalidPackage, "a layer is truncated")
		case data == nil:
			data = []byte{}
		}
		return data, nil
	}
}

// hiding are the paths that hide those of earlier layers: files, and what was removed. One
// that ends in a slash hides all that is below it.
type hiding map[string]bool

const whiteout, opaque = ".wh.", ".wh..wh..opq"

// entry notes an entry of a layer, and reports whether it is a file of the image.
func (h hiding) entry(file string, kind byte) bool {
	dir, base := path.Split(file)
	switch {
	case base == opaque:
		h[dir] = true
		return false
	case strings.HasPrefix(base, whiteout):
		h[dir+strings.TrimPrefix(base, whiteout)] = true
		h[dir+strings.TrimPrefix(base, whiteout)+"/"] = true
		return false
	case kind == tar.TypeDir:
		return false
	}
	h[file], h[file+"/"] = true, true
	return true
}

// size is how many bytes the paths have.
func (h hiding) size() int {
	n := 0
	for file := range h {
		n += len(file)
	}
	return n / 2
}

func (h hiding) add(others hiding) {
	for file := range others {
		h[file] = true
	}
}

func (h hiding) has(file string) bool {
	if h[file] {
		return true
	}
	for dir := path.Dir(file); ; dir = path.Dir(dir) {
		if h[strings.TrimSuffix(dir, "/")+"/"] {
			return true
		}
		if dir == "/" {
			return false
		}
	}
}
