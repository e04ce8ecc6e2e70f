package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const (
	sumsFile = "SHA256SUMS"
	// signed is the end of the name of a file's signature.
	signed = ".sigstore.json"
	// attested is the end of the name of a file of attestations, one a line.
	attested = ".intoto.jsonl"
)

// A release is a directory of files.
type release struct {
	dir, version string
	// sums are the checksums of SHA256SUMS by the name of the file.
	sums map[string]string
}

// open reads the checksums of a release; it does not compare them.
func open(dir, version string) (*release, error) {
	content, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if err != nil {
		return nil, err
	}
	r := &release{dir: dir, version: version, sums: map[string]string{}}
	lines := bufio.NewScanner(bytes.NewReader(content))
	for lines.Scan() {
		sum, name, found := strings.Cut(lines.Text(), "  ")
		raw, err := hex.DecodeString(sum)
		if !found || err != nil || len(raw) != sha256.Size || name != filepath.Base(name) {
			return nil, fmt.Errorf("%s: no checksum is %q", sumsFile, lines.Text())
		}
		if r.sums[name] != "" {
			return nil, fmt.Errorf("%s has %s twice", sumsFile, name)
		}
		r.sums[name] = sum
	}
	return r, lines.Err()
}

// path returns where a file of the release is.
func (r *release) path(name string) string { return filepath.Join(r.dir, name) }

// names returns the names of the files that were built, in order.
func (r *release) names() []string {
	var out []string
	for name := range r.sums {
		out = append(out, name)
	}
	slices.Sort(out)
	return out
}

// archives returns the names of the archives of the plugin, in order.
func (r *release) archives() []string {
	return slices.DeleteFunc(r.names(), func(name string) bool {
		return !strings.HasPrefix(name, "kubectl-janus_") || !strings.HasSuffix(name, ".tar.gz") && !strings.HasSuffix(name, ".zip")
	})
}

func (r *release) layout() string     { return "janusd-" + r.version + ".oci.tar" }
func (r *release) imageBill() string  { return "janusd-" + r.version + ".cdx.json" }
func (r *release) pluginBill() string { return "kubectl-janus-" + r.version + ".cdx.json" }
func (r *release) chart() string      { return "janus-" + strings.TrimPrefix(r.version, "v") + ".tgz" }
func (r *release) provenance() string { return "janus-" + r.version + attested }

// attestation is where the attestation of a bill of materials is.
func attestation(bill string) string { return strings.TrimSuffix(bill, ".json") + attested }

// digest returns the digest of the image, which SHA256SUMS has as a file.
func (r *release) digest() (string, error) {
	content, err := os.ReadFile(r.path("janusd-" + r.version + ".digest"))
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(string(content)), nil
}

// check compares the files with the checksums, and finds those that are missing or unknown.
func (r *release) check() error {
	var errs []error
	for _, name := range []string{r.layout(), r.imageBill(), r.pluginBill(), r.chart(), "janusd-" + r.version + ".digest", "install.yaml", "janus.yaml"} {
		if r.sums[name] == "" {
			errs = append(errs, fmt.Errorf("%s has no %s", sumsFile, name))
		}
	}
	if len(r.archives()) == 0 {
		errs = append(errs, fmt.Errorf("%s has no archive of the plugin", sumsFile))
	}
	for _, name := range r.names() {
		sum, err := sumOf(r.path(name))
		if err == nil && sum != r.sums[name] {
			err = fmt.Errorf("%s has the checksum %s, and not %s as %s says", name, sum, r.sums[name], sumsFile)
		}
		errs = append(errs, err)
	}
	entries, err := os.ReadDir(r.dir)
	errs = append(errs, err)
	for _, entry := range entries {
		if !r.knows(entry) {
			errs = append(errs, fmt.Errorf("%s is no file of the release", entry.Name()))
		}
	}
	return errors.Join(errs...)
}

// knows reports whether a file belongs to the release.
func (r *release) knows(entry fs.DirEntry) bool {
	name := entry.Name()
	of := strings.TrimSuffix(name, signed)
	extra := []string{sumsFile, r.provenance(), attestation(r.imageBill()), attestation(r.pluginBill())}
	return !entry.IsDir() && (r.sums[of] != "" || of == sumsFile || slices.Contains(extra, name))
}

// sumOf returns the SHA-256 of a file.
func sumOf(path string) (string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}
