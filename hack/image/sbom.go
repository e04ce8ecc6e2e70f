package main

import (
	"debug/buildinfo"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// writeSBOM writes a software bill of materials: the modules that the linker has put into
// the programs, as they say themselves. Like the image it depends on the sources alone, so
// it has neither a time nor a serial number.
func writeSBOM(o options, programs []program, digest string) error {
	modules := map[string]*debug.Module{}
	var root *debug.Module
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p.path)
		if err != nil {
			return fmt.Errorf("read what %s is built of: %w", p.platform, err)
		}
		root = &info.Main
		std := &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")}
		for _, module := range append(info.Deps, std) {
			if module.Replace != nil {
				module = module.Replace
			}
			modules[purl(module.Path, module.Version)] = module
		}
	}
	if err := os.MkdirAll(filepath.Dir(o.sbom), 0o755); err != nil {
		return err
	}
	file, err := os.Create(o.sbom)
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(file, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill(o, root, modules, digest)); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// bill lists the modules in the order of their names.
func bill(o options, root *debug.Module, modules map[string]*debug.Module, digest string) *cdx.BOM {
	self := purl(root.Path, o.version)
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &cdx.Component{
		BOMRef: self, Type: cdx.ComponentTypeContainer, Name: o.name, Version: o.version, PackageURL: self,
		Licenses:   &cdx.Licenses{{Expression: o.licenses}},
		Properties: &[]cdx.Property{{Name: "org.opencontainers.image.digest", Value: digest}},
	}}
	components := []cdx.Component{}
	references := slices.Sorted(maps.Keys(modules))
	for _, reference := range references {
		module := modules[reference]
		component := cdx.Component{
			BOMRef: reference, Type: cdx.ComponentTypeLibrary, Name: module.Path, Version: module.Version, PackageURL: reference,
		}
		if module.Sum != "" {
			component.Properties = &[]cdx.Property{{Name: "go.sum", Value: module.Sum}}
		}
		components = append(components, component)
	}
	bom.Components = &components
	bom.Dependencies = &[]cdx.Dependency{{Ref: self, Dependencies: &references}}
	return bom
}

// purl is the package URL of a module.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
