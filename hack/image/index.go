package main

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"os"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"janus.io/janus/hack/image/internal/program"
)

// user is the one that the Deployment demands. It needs no entry in a passwd
// file, because it is given as numbers.
const user = "65532:65532"

// epoch is the time of everything: a real one would change the digest.
var epoch = time.Unix(0, 0).UTC()

// makeIndex makes one image of each program, and the index of all of them.
func makeIndex(o options, programs []program.Program) (v1.ImageIndex, error) {
	labels := map[string]string{
		"org.opencontainers.image.title":    o.Name,
		"org.opencontainers.image.version":  o.Version,
		"org.opencontainers.image.licenses": o.Licenses,
	}
	index := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for _, p := range programs {
		image, err := makeImage(o.Name, p, labels)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Platform, err)
		}
		index = mutate.AppendManifests(index, mutate.IndexAddendum{
			Add:        image,
			Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: p.Platform.OS, Architecture: p.Platform.Arch}},
		})
	}
	annotated, ok := mutate.Annotations(index, labels).(v1.ImageIndex)
	if !ok {
		return nil, fmt.Errorf("an index with annotations is a %T", annotated)
	}
	return annotated, nil
}

// makeImage makes an image whose one layer holds the program.
func makeImage(name string, p program.Program, labels map[string]string) (v1.Image, error) {
	content, err := os.ReadFile(p.Path)
	if err != nil {
		return nil, err
	}
	archive, err := archiveOf(name, content)
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(
		func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.MediaType(empty.Image, types.OCIManifestSchema1)
	image = mutate.ConfigMediaType(image, types.OCIConfigJSON)
	image, err = mutate.Append(image, mutate.Addendum{
		Layer:   layer,
		History: v1.History{Created: v1.Time{Time: epoch}, CreatedBy: "go build", Comment: name},
	})
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = p.Platform.OS, p.Platform.Arch
	config.Created = v1.Time{Time: epoch}
	config.Config = v1.Config{User: user, Entrypoint: []string{"/" + name}, WorkingDir: "/", Labels: labels}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		return nil, err
	}
	annotated, ok := mutate.Annotations(image, labels).(v1.Image)
	if !ok {
		return nil, fmt.Errorf("an image with annotations is a %T", annotated)
	}
	return annotated, nil
}

// archiveOf is a tar of one program, which belongs to root, so that the user it
// runs as cannot change it.
func archiveOf(name string, content []byte) ([]byte, error) {
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	err := w.WriteHeader(&tar.Header{
		Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o555, ModTime: epoch, Format: tar.FormatUSTAR,
	})
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(content); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}
