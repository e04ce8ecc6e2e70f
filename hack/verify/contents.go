package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

// checkContents checks that the files of a release agree: each names what was released.
func (r *release) checkContents() error {
	digest, err := r.digest()
	if err != nil {
		return err
	}
	return errors.Join(r.checkImage(digest), r.checkManifests(digest), r.checkChart(digest), r.checkKrew())
}

// checkImage checks that the image is whole and has the digest that is released.
func (r *release) checkImage(digest string) error {
	return r.withImage(func(index v1.ImageIndex) error {
		is, err := index.Digest()
		if err != nil {
			return err
		}
		if is.String() != digest {
			return fmt.Errorf("%s has the digest %s, and not %s", r.layout(), is, digest)
		}
		if err := validate.Index(index); err != nil {
			return fmt.Errorf("%s: %w", r.layout(), err)
		}
		return nil
	})
}

var imageField = regexp.MustCompile(`(?m)^\s*(?:- )?image:\s*(\S+)\s*$`)

// checkManifests checks that the manifests run the image and no other.
func (r *release) checkManifests(digest string) error {
	content, err := os.ReadFile(r.path("install.yaml"))
	if err != nil {
		return err
	}
	found := imageField.FindAllSubmatch(content, -1)
	if len(found) == 0 {
		return errors.New("install.yaml runs no image")
	}
	for _, field := range found {
		if !strings.HasSuffix(string(field[1]), "@"+digest) {
			return fmt.Errorf("install.yaml runs %s, and not the image %s", field[1], digest)
		}
	}
	return nil
}

// checkChart checks that the chart names the image.
func (r *release) checkChart(digest string) error {
	values, err := r.fromArchive(r.chart(), "janus/values.yaml")
	if err != nil {
		return err
	}
	if !regexp.MustCompile(`(?m)^  digest: "?` + regexp.QuoteMeta(digest) + `"?$`).Match(values) {
		return fmt.Errorf("the values of %s do not name the image %s", r.chart(), digest)
	}
	return nil
}

var krewSum = regexp.MustCompile(`(?m)^\s*(?:- )?sha256:\s*"?([0-9a-f]{64})"?\s*$`)

// checkKrew checks that Krew's manifest has the checksums of the archives and no other.
func (r *release) checkKrew() error {
	content, err := os.ReadFile(r.path("janus.yaml"))
	if err != nil {
		return err
	}
	var named, want []string
	for _, found := range krewSum.FindAllSubmatch(content, -1) {
		named = append(named, string(found[1]))
	}
	for _, archive := range r.archives() {
		want = append(want, r.sums[archive])
	}
	slices.Sort(named)
	slices.Sort(want)
	if !slices.Equal(named, want) {
		return errors.New("janus.yaml does not have the checksums of the archives")
	}
	return nil
}

// fromArchive returns a file out of a .tar.gz of the release.
func (r *release) fromArchive(archive, name string) ([]byte, error) {
	content, err := os.ReadFile(r.path(archive))
	if err != nil {
		return nil, err
	}
	packed, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	found, err := fromTar(packed, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", archive, err)
	}
	return found, nil
}

// fromTar returns a file out of a tar.
func fromTar(in io.Reader, name string) ([]byte, error) {
	for files := tar.NewReader(in); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("no %s is in it", name)
		}
		if err != nil {
			return nil, err
		}
		if strings.TrimPrefix(header.Name, "./") == name {
			return io.ReadAll(files)
		}
	}
}
