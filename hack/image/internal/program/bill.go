package program

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

// WriteBill writes a software bill of materials to a file: the modules that the linker has
// put into the programs, as they say themselves. The component is what the programs were
// packed into; name, version and license are added to it. Like the programs the bill
// depends on the sources alone, so it has neither a time nor a serial number.
func (s Source) WriteBill(path string, programs []Program, of cdx.Component) error {
	modules := map[string]*debug.Module{}
	var root *debug.Module
	for _, p := range programs {
		info, err := buildinfo.ReadFile(p.Path)
		if err != nil {
			return fmt.Errorf("read what %s is built of: %w", p.Platform, err)
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
	self := purl(root.Path, s.Version)
	of.BOMRef, of.Name, of.Version, of.PackageURL = self, s.Name, s.Version, self
	of.Licenses = &cdx.Licenses{{Expression: s.Licenses}}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := cdx.NewBOMEncoder(file, cdx.BOMFileFormatJSON).SetPretty(true).Encode(bill(of, modules)); err != nil {
		_ = file.Close()
		return err
	}
	return file.Close()
}

// bill lists the modules in the order of their names.
func bill(of cdx.Component, modules map[string]*debug.Module) *cdx.BOM {
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Component: &of}
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
	bom.Dependencies = &[]cdx.Dependency{{Ref: of.BOMRef, Dependencies: &references}}
	return bom
}

// purl is the package URL of a module.
func purl(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}
