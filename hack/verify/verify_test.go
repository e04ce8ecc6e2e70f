package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAGoodReleaseIsAccepted(t *testing.T) {
	require.NoError(t, newTrial(t, nil).check())
}

func TestAChangedByteInAnyFileIsNoticed(t *testing.T) {
	tr := newTrial(t, nil)
	who, err := (&signers{key: tr.key}).trust()
	require.NoError(t, err)
	entries, err := os.ReadDir(tr.dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2*(9+1)+3, "the files, the checksums, a signature of each, and three attestations")
	require.NoError(t, options{dir: tr.dir, version: version}.tryTampered(t.Context(), who, io.Discard))
	require.NoError(t, tr.check(), "the release itself was not changed")
}

// What is wrong before the files are summed and signed: those who sign see none of it.
func TestWhatIsSignedAndWrongIsRefused(t *testing.T) {
	other := "sha256:" + strings.Repeat("0", 64)
	for name, c := range map[string]struct {
		change func(files map[string][]byte)
		says   string
	}{
		"manifests of another": {func(f map[string][]byte) { f["install.yaml"] = []byte("image: example.com/janusd@" + other + "\n") }, "install.yaml runs example.com/janusd@" + other},
		"manifests by a tag":   {func(f map[string][]byte) { f["install.yaml"] = []byte("  image: example.com/janusd:v1\n") }, "install.yaml runs example.com/janusd:v1"},
		"manifests of nothing": {func(f map[string][]byte) { f["install.yaml"] = nil }, "install.yaml runs no image"},
		"a chart of another":   {func(f map[string][]byte) { f["janus-1.2.3.tgz"] = packed(t, "janus/values.yaml", nil) }, "do not name the image"},
		"Krew with another": {func(f map[string][]byte) {
			f["janus.yaml"] = bytes.Replace(f["janus.yaml"], []byte("256: "), []byte("256: 0"), 1)
		}, "janus.yaml does not have the checksums"},
		"a bill that lacks one": {func(f map[string][]byte) { f["janusd-v1.2.3.cdx.json"] = []byte(`{"components":[]}`) }, "janusd-v1.2.3.cdx.json lacks std"},
		"a bill that has one more": {func(f map[string][]byte) {
			f["kubectl-janus-v1.2.3.cdx.json"] = bytes.Replace(f["kubectl-janus-v1.2.3.cdx.json"], []byte(`[`), []byte(`[{"name":"example.com/more","version":"v1"},`), 1)
		}, "lists example.com/more v1, which is in no program"},
		"an archive of no program":  {func(f map[string][]byte) { f[linux] = packed(t, "kubectl-janus", []byte("no program")) }, linux},
		"an archive that is empty":  {func(f map[string][]byte) { f[linux] = packed(t, "other", nil) }, "no kubectl-janus is in it"},
		"an archive nobody unpacks": {func(f map[string][]byte) { f[windows] = []byte("no archive") }, windows},
	} {
		t.Run(name, func(t *testing.T) {
			assert.ErrorContains(t, newTrial(t, c.change).check(), c.says)
		})
	}
}

// What is wrong with what was signed rightly.
func TestWhatIsMissingOrExchangedIsRefused(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(tr *trial)
		says string
	}{
		"another digest":                 {func(tr *trial) { tr.file("janusd-v1.2.3.digest", []byte("sha256:"+strings.Repeat("0", 64)+"\n")) }, "janusd-v1.2.3.oci.tar has the digest"},
		"a file is missing":              {func(tr *trial) { require.NoError(t, os.Remove(tr.path("install.yaml"))) }, "install.yaml"},
		"a file is not listed":           {func(tr *trial) { tr.file("more", nil) }, "more is no file of the release"},
		"a signature is missing":         {func(tr *trial) { require.NoError(t, os.Remove(tr.path(linux+signed))) }, linux + signed},
		"a signature of another file":    {func(tr *trial) { tr.file(linux+signed, content(tr, windows+signed)) }, "signature of " + linux},
		"an attestation for a signature": {func(tr *trial) { tr.file(linux+signed, content(tr, tr.provenance())) }, "not the signature of a file"},
		"a signature for an attestation": {func(tr *trial) { tr.file(tr.provenance(), content(tr, linux+signed)) }, provenanceFile + ": "},
		"no attestation":                 {func(tr *trial) { tr.file(tr.provenance(), nil) }, "no attestation is there"},
		"two of them":                    {func(tr *trial) { tr.file(tr.provenance(), bytes.Repeat(content(tr, tr.provenance()), 2)) }, "has 2 attestations"},
		"attestations of the other bill": {func(tr *trial) { tr.file(attestation(tr.imageBill()), content(tr, attestation(tr.pluginBill()))) }, "it is not of the image"},
		"a bill for a provenance":        {func(tr *trial) { tr.file(tr.provenance(), content(tr, attestation(tr.imageBill()))) }, "and not one " + provenanceType},
		"a file without provenance": {func(tr *trial) {
			few := map[string]string{linux: tr.sums[linux]}
			require.NoError(t, tr.attestTo(tr.signer, tr.provenance(), provenanceType, few, origins(version, commit)))
		}, "is not of the files in SHA256SUMS"},
		"a provenance of another commit": {func(tr *trial) { require.NoError(t, tr.attest(tr.signer, "feed")) }, "does not name the commit"},
		"a provenance that says nothing": {func(tr *trial) {
			require.NoError(t, tr.attestTo(tr.signer, tr.provenance(), provenanceType, tr.sums, map[string]any{}))
		}, "names no kind of build or no builder"},
		"another bill attested": {func(tr *trial) {
			archives := map[string]string{linux: tr.sums[linux], windows: tr.sums[windows]}
			require.NoError(t, tr.attestTo(tr.signer, attestation(tr.pluginBill()), billType, archives, map[string]any{"components": []any{}}))
		}, "the bill is not that of " + "kubectl-janus-v1.2.3.cdx.json"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrial(t, nil)
			c.do(tr)
			assert.ErrorContains(t, tr.check(), c.says)
		})
	}
}

const provenanceFile = "janus-v1.2.3.intoto.jsonl"

func TestTheRegistryHasToHaveWhatIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		do   func(tr *trial)
		says string
	}{
		"another image": {func(tr *trial) {
			require.NoError(t, remote.WriteIndex(tr.images.Tag(version), imageOf(t, []byte("another")), tr.images.options...))
		}, "has the digest"},
		"another chart": {func(tr *trial) {
			tr.files["janus-1.2.3.tgz"] = []byte("another")
			tr.serve(imageOf(t, compiled(t)))
		}, "is not janus-1.2.3.tgz"},
		"what another key has signed": {func(tr *trial) {
			other, _, err := newSigner(t.Context())
			require.NoError(t, err)
			digest, err := tr.digest()
			require.NoError(t, err)
			require.NoError(t, tr.images.attach(other, digest, signType, map[string]any{}))
		}, "attached to "},
		"a bill of another image": {func(tr *trial) {
			digest, err := tr.digest()
			require.NoError(t, err)
			require.NoError(t, tr.images.attach(tr.signer, digest, billType, map[string]any{"components": []any{}}))
		}, "the bill is not that of janusd-v1.2.3.cdx.json"},
	} {
		t.Run(name, func(t *testing.T) {
			tr := newTrial(t, nil)
			c.do(tr)
			assert.ErrorContains(t, tr.check(), c.says)
		})
	}
}

func TestAnImageAndAChartThatNobodySignedAreRefused(t *testing.T) {
	tr := newTrial(t, nil)
	tr.serve(imageOf(t, compiled(t)))
	err := tr.check()
	for _, kind := range []string{signType, provenanceType, billType} {
		require.ErrorContains(t, err, "has no "+kind+" attached")
	}
	assert.ErrorContains(t, err, "/charts/janus@")
}

func TestAnotherKeyIsRefused(t *testing.T) {
	tr, other := newTrial(t, nil), newTrial(t, nil)
	require.ErrorContains(t, tr.checkAs(&signers{key: other.key}), "signature of "+linux)
}

func TestTheSignersHaveToBeNamed(t *testing.T) {
	for _, who := range []signers{
		{}, {key: "key", issuer: "https://example.com"}, {key: "key", identity: "me"}, {identity: "me"},
		{issuer: "https://example.com"}, {identity: "me", identityPattern: "me", issuer: "https://example.com"},
	} {
		_, err := who.trust()
		assert.ErrorContains(t, err, "who must have signed", "%+v", who)
	}
}

// Nothing but spaces may differ from what protojson writes, and those it puts in at random.
func TestBundlesAreOneLine(t *testing.T) {
	tr := newTrial(t, nil)
	for _, name := range []string{linux + signed, tr.provenance()} {
		line := bytes.TrimSuffix(content(tr, name), []byte("\n"))
		assert.NotContains(t, string(line), "\n")
		assert.True(t, json.Valid(line))
	}
}

func content(tr *trial, name string) []byte {
	tr.t.Helper()
	out, err := os.ReadFile(tr.path(name))
	require.NoError(tr.t, err)
	return out
}
