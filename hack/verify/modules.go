package main

import (
	"archive/zip"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// modules are Go modules, as name and version.
type modules map[string]bool

// checkModules checks that the bills of materials list what the programs were built of.
func (r *release) checkModules() error {
	return errors.Join(r.checkImageModules(), r.checkPluginModules())
}

func (r *release) checkImageModules() error {
	built := modules{}
	err := r.withImage(func(index v1.ImageIndex) error {
		manifest, err := index.IndexManifest()
		if err != nil {
			return err
		}
		for _, m := range manifest.Manifests {
			image, err := index.Image(m.Digest)
			if err != nil {
				return err
			}
			program, err := programOf(image)
			if err == nil {
				err = built.add(program)
			}
			if err != nil {
				return fmt.Errorf("%s, %s: %w", r.layout(), m.Platform, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return r.compareBill(r.imageBill(), built)
}

// programOf returns the program that an image runs.
func programOf(image v1.Image) ([]byte, error) {
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	layers, err := image.Layers()
	if err != nil {
		return nil, err
	}
	if len(config.Config.Entrypoint) != 1 || len(layers) != 1 {
		return nil, errors.New("it does not run one program of one layer")
	}
	content, err := layers[0].Uncompressed()
	if err != nil {
		return nil, err
	}
	defer func() { _ = content.Close() }()
	return fromTar(content, strings.TrimPrefix(config.Config.Entrypoint[0], "/"))
}

func (r *release) checkPluginModules() error {
	built := modules{}
	for _, archive := range r.archives() {
		program, err := r.plugin(archive)
		if err == nil {
			err = built.add(program)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", archive, err)
		}
	}
	return r.compareBill(r.pluginBill(), built)
}

// plugin returns the program in an archive of the plugin.
func (r *release) plugin(archive string) ([]byte, error) {
	if strings.HasSuffix(archive, ".tar.gz") {
		return r.fromArchive(archive, "kubectl-janus")
	}
	files, err := zip.OpenReader(r.path(archive))
	if err != nil {
		return nil, err
	}
	defer func() { _ = files.Close() }()
	program, err := files.Open("kubectl-janus.exe")
	if err != nil {
		return nil, err
	}
	defer func() { _ = program.Close() }()
	return io.ReadAll(program)
}

// add adds the modules that the linker has noted in a program.
func (m modules) add(program []byte) error {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return err
	}
	for _, module := range append(info.Deps, &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}) {
		if module.Replace != nil {
			module = module.Replace
		}
		m[module.Path+" "+module.Version] = true
	}
	return nil
}

// compareBill compares modules with those that a bill of materials lists.
func (r *release) compareBill(bill string, built modules) error {
	content, err := os.ReadFile(r.path(bill))
	if err != nil {
		return err
	}
	var bom struct {
		Components []struct{ Name, Version string }
	}
	if err := json.Unmarshal(content, &bom); err != nil {
		return fmt.Errorf("%s: %w", bill, err)
	}
	var wrong []string
	for _, c := range bom.Components {
		module := c.Name + " " + c.Version
		if !built[module] {
			wrong = append(wrong, "lists "+module+", which is in no program")
		}
		delete(built, module)
	}
	for module := range built {
		wrong = append(wrong, "lacks "+module)
	}
	if len(wrong) > 0 {
		slices.Sort(wrong)
		return fmt.Errorf("%s %s", bill, strings.Join(wrong, "; "))
	}
	return nil
}
