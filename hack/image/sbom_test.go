package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestTheBillListsTheModulesOfJanusd compares it with what go says of the program in the
// image.
func TestTheBillListsTheModulesOfJanusd(t *testing.T) {
	dir := t.TempDir()
	o := flags(t, "--root=../..", "--platforms=linux/"+runtime.GOARCH, "--version=v1.2.3", "--output="+filepath.Join(dir, "janusd"), "--sbom="+filepath.Join(dir, "sbom.json"))
	digest, err := run(t.Context(), o)
	require.NoError(t, err)

	content, err := os.ReadFile(o.sbom)
	require.NoError(t, err)
	bom := new(cdx.BOM)
	require.NoError(t, cdx.NewBOMDecoder(strings.NewReader(string(content)), cdx.BOMFileFormatJSON).Decode(bom))
	assert.Equal(t, "janusd", bom.Metadata.Component.Name)
	assert.Equal(t, "v1.2.3", bom.Metadata.Component.Version)
	assert.Equal(t, digest, (*bom.Metadata.Component.Properties)[0].Value)
	var listed []string
	for _, component := range *bom.Components {
		assert.Equal(t, "pkg:golang/"+component.Name+"@"+strings.ReplaceAll(component.Version, "+", "%2B"), component.PackageURL)
		listed = append(listed, component.Name+" "+component.Version)
	}

	index, _ := readLayout(t, o.output)
	manifest, err := index.IndexManifest()
	require.NoError(t, err)
	image, err := index.Image(manifest.Manifests[0].Digest)
	require.NoError(t, err)
	program := filepath.Join(dir, "program")
	require.NoError(t, os.WriteFile(program, fileOf(t, image, "janusd"), 0o700))
	said, err := exec.CommandContext(t.Context(), "go", "version", "-m", program).Output()
	require.NoError(t, err)
	var modules []string
	for line := range strings.Lines(string(said)) {
		words := strings.Fields(line)
		switch words[0] {
		case "dep":
			modules = append(modules, words[1]+" "+words[2])
		case program + ":":
			modules = append(modules, "std "+strings.TrimPrefix(words[1], "go"))
		}
	}
	require.Greater(t, len(modules), 10)
	assert.ElementsMatch(t, modules, listed)
}

func TestTheBillIsTheSameEachTime(t *testing.T) {
	var bills []string
	for range 2 {
		dir := t.TempDir()
		o := flags(t, "--root="+module(t), "--version-variable=main.version", "--package=./cmd/tiny", "--output="+filepath.Join(dir, "tiny"), "--sbom="+filepath.Join(dir, "sbom.json"))
		_, err := run(t.Context(), o)
		require.NoError(t, err)
		content, err := os.ReadFile(o.sbom)
		require.NoError(t, err)
		bills = append(bills, string(content))
	}
	assert.Equal(t, bills[0], bills[1])
	assert.Contains(t, bills[0], "pkg:golang/std@")
}
