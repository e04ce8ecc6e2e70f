package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"testing"

	protobundle "github.com/sigstore/protobuf-specs/gen/pb-go/bundle/v1"
	protocommon "github.com/sigstore/protobuf-specs/gen/pb-go/common/v1"
	protorekor "github.com/sigstore/protobuf-specs/gen/pb-go/rekor/v1"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"github.com/sigstore/sigstore-go/pkg/testing/ca"
	"github.com/sigstore/sigstore-go/pkg/tlog"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/encoding/protojson"
)

const (
	workflow = "https://example.com/janus/.github/workflows/release.yaml@refs/tags/v1.2.3"
	issuer   = "https://token.example.com"
)

// keyless signs a trial as a workflow does: with a certificate for its identity, a time stamp and
// an entry in a log, of authorities of the test. It returns the file of their trusted root.
func (tr *trial) keyless(identity, issuer string) string {
	tr.t.Helper()
	authority, err := ca.NewVirtualSigstore()
	require.NoError(tr.t, err)
	signer := func(c sign.Content) ([]byte, error) {
		var entity *ca.TestEntity
		var err error
		switch c := c.(type) {
		case *sign.PlainData:
			entity, err = authority.Sign(identity, issuer, c.Data)
		case *sign.DSSEData:
			entity, err = authority.Attest(identity, issuer, c.Data)
		}
		if err != nil {
			return nil, err
		}
		return bundled(authority, c, entity)
	}
	require.NoError(tr.t, tr.signFiles(signer))
	require.NoError(tr.t, tr.attest(signer, commit))
	tr.images, tr.charts = nil, nil

	logs := map[string]*root.TransparencyLog{}
	for id, log := range authority.RekorLogs() {
		// The library's tests have it as text.
		log.ID, err = hex.DecodeString(id)
		require.NoError(tr.t, err)
		logs[id] = log
	}
	trusted, err := root.NewTrustedRoot(root.TrustedRootMediaType01, authority.FulcioCertificateAuthorities(), nil,
		authority.TimestampingAuthorities(), logs)
	require.NoError(tr.t, err)
	content, err := json.Marshal(trusted)
	require.NoError(tr.t, err)
	file := filepath.Join(tr.t.TempDir(), "trusted_root.json")
	require.NoError(tr.t, os.WriteFile(file, content, 0o600))
	return file
}

// bundled writes what an authority of tests has signed as a bundle.
func bundled(authority *ca.VirtualSigstore, c sign.Content, entity *ca.TestEntity) ([]byte, error) {
	verification, err := entity.VerificationContent()
	if err != nil {
		return nil, err
	}
	b := &protobundle.Bundle{MediaType: bundleMediaType, VerificationMaterial: &protobundle.VerificationMaterial{
		Content:                   &protobundle.VerificationMaterial_Certificate{Certificate: &protocommon.X509Certificate{RawBytes: verification.Certificate().Raw}},
		TimestampVerificationData: &protobundle.TimestampVerificationData{},
	}}
	stamps, err := entity.Timestamps()
	if err != nil {
		return nil, err
	}
	for _, stamp := range stamps {
		b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps = append(
			b.VerificationMaterial.TimestampVerificationData.Rfc3161Timestamps, &protocommon.RFC3161SignedTimestamp{SignedTimestamp: stamp})
	}
	entries, err := entity.TlogEntries()
	if err != nil {
		return nil, err
	}
	kind := "hashedrekord"
	if _, statement := c.(*sign.DSSEData); statement {
		kind = "dsse"
	}
	logged, err := entryOf(authority, kind, entries[0].TransparencyLogEntry())
	if err != nil {
		return nil, err
	}
	b.VerificationMaterial.TlogEntries = []*protorekor.TransparencyLogEntry{logged}
	signature, err := entity.SignatureContent()
	if err != nil {
		return nil, err
	}
	switch c := c.(type) {
	case *sign.PlainData:
		digest := signature.MessageSignatureContent().Digest()
		c.Bundle(b, signature.Signature(), digest, protocommon.HashAlgorithm_SHA2_256)
	case *sign.DSSEData:
		c.Bundle(b, signature.Signature(), nil, protocommon.HashAlgorithm_SHA2_256)
	}
	return compact(protojson.Marshal(b))
}

// entryOf completes an entry of the log with the log's promise and proof, which tests of the
// library do without.
func entryOf(authority *ca.VirtualSigstore, kind string, e *protorekor.TransparencyLogEntry) (*protorekor.TransparencyLogEntry, error) {
	promise, err := authority.RekorSignPayload(tlog.RekorPayload{
		Body:           base64.StdEncoding.EncodeToString(e.CanonicalizedBody),
		IntegratedTime: e.IntegratedTime, LogIndex: e.LogIndex, LogID: hex.EncodeToString(e.LogId.KeyId),
	})
	if err != nil {
		return nil, err
	}
	proof, err := authority.GetInclusionProof(e.CanonicalizedBody)
	if err != nil {
		return nil, err
	}
	root, err := hex.DecodeString(*proof.RootHash)
	if err != nil {
		return nil, err
	}
	e.KindVersion = &protorekor.KindVersion{Kind: kind, Version: "0.0.1"}
	e.InclusionPromise = &protorekor.InclusionPromise{SignedEntryTimestamp: promise}
	e.InclusionProof = &protorekor.InclusionProof{
		LogIndex: *proof.LogIndex, RootHash: root, TreeSize: *proof.TreeSize,
		Checkpoint: &protorekor.Checkpoint{Envelope: *proof.Checkpoint},
	}
	return e, nil
}

func TestAnIdentityIsVerified(t *testing.T) {
	tr := newTrial(t, nil)
	trusted := tr.keyless(workflow, issuer)
	good := signers{identity: workflow, issuer: issuer, root: trusted}
	require.NoError(t, tr.checkAs(&good))
	pattern := signers{identityPattern: `^https://example\.com/janus/`, issuer: issuer, root: trusted}
	require.NoError(t, tr.checkAs(&pattern))

	for name, who := range map[string]signers{
		"another workflow":  {identity: workflow + "-rc.1", issuer: issuer, root: trusted},
		"another issuer":    {identity: workflow, issuer: "https://example.com", root: trusted},
		"other authorities": {identity: workflow, issuer: issuer, root: newTrial(t, nil).keyless(workflow, issuer)},
		"a key":             {key: tr.key},
	} {
		err := tr.checkAs(&who)
		require.ErrorContains(t, err, "signature of "+linux, name)
		require.ErrorContains(t, err, provenanceFile, name)
	}

	v, err := good.trust()
	require.NoError(t, err)
	require.NoError(t, options{dir: tr.dir, version: version}.tryTampered(t.Context(), v, io.Discard))
}

// A certificate alone proves no time: it is valid for ten minutes.
func TestAnIdentityWithoutALogIsRefused(t *testing.T) {
	tr := newTrial(t, nil)
	who := signers{identity: workflow, issuer: issuer, root: tr.keyless(workflow, issuer)}
	for _, name := range append(tr.names(), sumsFile) {
		b := &protobundle.Bundle{}
		require.NoError(t, protojson.Unmarshal(content(tr, name+signed), b))
		b.VerificationMaterial.TlogEntries = nil
		without, err := protojson.Marshal(b)
		require.NoError(t, err)
		tr.file(name+signed, without)
	}
	require.ErrorContains(t, tr.checkAs(&who), "log")
}
