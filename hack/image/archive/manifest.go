package main

import (
	"bytes"
	_ "embed" // for the template
	"os"
	"path/filepath"
	"strings"
	"text/template"
)

// manifestFile is the name of the manifest. Krew demands that it is that of the plugin.
const manifestFile = "janus.yaml"

//go:embed krew.yaml
var manifestText string

var manifestTemplate = template.Must(template.New(manifestFile).Parse(manifestText))

// offer is what the manifest says of one archive.
type offer struct {
	OS, Arch, URI, SHA256, Program string
	Files                          []string
}

// writeManifest writes the manifest by which Krew installs the archives.
func writeManifest(o options, archives []archive) error {
	said := struct {
		Version, Homepage string
		Offers            []offer
	}{Version: o.Version, Homepage: o.homepage}
	for _, a := range archives {
		uri := a.file
		if o.downloads != "" {
			uri = strings.TrimSuffix(o.downloads, "/") + "/" + a.file
		}
		said.Offers = append(said.Offers, offer{
			OS: a.platform.OS, Arch: a.platform.Arch, URI: uri, SHA256: a.sha256, Program: a.program, Files: a.content,
		})
	}
	var out bytes.Buffer
	if err := manifestTemplate.Execute(&out, said); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(o.output, manifestFile), out.Bytes(), 0o644)
}
