package main

import (
	"bytes"
	"crypto"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/sigstore-go/pkg/bundle"
	"github.com/sigstore/sigstore-go/pkg/root"
	"github.com/sigstore/sigstore-go/pkg/verify"
	"github.com/sigstore/sigstore/pkg/cryptoutils"
	"github.com/sigstore/sigstore/pkg/signature"
)

// signers says who must have signed, as flags do.
type signers struct{ key, identity, identityPattern, issuer, root string }

func (s *signers) addTo(fs *flag.FlagSet) {
	fs.StringVar(&s.key, "key", "", "`file` of the public key that must have signed, as PEM")
	fs.StringVar(&s.identity, "identity", "", "`name` in the certificate of who must have signed, such as the URL of the workflow")
	fs.StringVar(&s.identityPattern, "identity-regexp", "", "`pattern` of that name, instead")
	fs.StringVar(&s.issuer, "issuer", "", "`URL` of who vouches for that identity")
	fs.StringVar(&s.root, "trusted-root", "", "`file` of the trusted root of Sigstore (default: it is fetched)")
}

// trust verifies bundles.
type trust struct {
	verifier *verify.Verifier
	who      verify.PolicyOption
}

// trust returns what verifies bundles of these signers.
func (s *signers) trust() (*trust, error) {
	switch {
	case s.key != "" && s.identity == "" && s.identityPattern == "" && s.issuer == "":
		return s.ofKey()
	case s.key == "" && (s.identity == "") != (s.identityPattern == "") && s.issuer != "":
		return s.ofIdentity()
	default:
		return nil, errors.New("who must have signed is given by --key, or by --issuer with --identity or --identity-regexp")
	}
}

func (s *signers) ofKey() (*trust, error) {
	content, err := os.ReadFile(s.key)
	if err != nil {
		return nil, err
	}
	key, err := cryptoutils.UnmarshalPEMToPublicKey(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.key, err)
	}
	verifier, err := signature.LoadVerifier(key, crypto.SHA256)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.key, err)
	}
	always := root.NewExpiringKey(verifier, time.Time{}, time.Time{})
	material := root.NewTrustedPublicKeyMaterial(func(string) (root.TimeConstrainedVerifier, error) { return always, nil })
	// A key alone tells no time.
	v, err := verify.NewVerifier(material, verify.WithNoObserverTimestamps())
	if err != nil {
		return nil, err
	}
	return &trust{verifier: v, who: verify.WithKey()}, nil
}

func (s *signers) ofIdentity() (*trust, error) {
	var material *root.TrustedRoot
	var err error
	if s.root != "" {
		material, err = root.NewTrustedRootFromPath(s.root)
	} else {
		material, err = root.FetchTrustedRoot()
	}
	if err != nil {
		return nil, fmt.Errorf("trusted root: %w", err)
	}
	options := []verify.VerifierOption{verify.WithTransparencyLog(1), verify.WithObserverTimestamps(1)}
	// An authority without a log of its certificates, as private ones are, embeds no proof of it.
	if len(material.CTLogs()) > 0 {
		options = append(options, verify.WithSignedCertificateTimestamps(1))
	}
	v, err := verify.NewVerifier(material, options...)
	if err != nil {
		return nil, err
	}
	identity, err := verify.NewShortCertificateIdentity(s.issuer, "", s.identity, s.identityPattern)
	if err != nil {
		return nil, err
	}
	return &trust{verifier: v, who: verify.WithCertificateIdentity(identity)}, nil
}

// blob verifies the signature of a file's content.
func (t *trust) blob(content, signature []byte) error {
	b := &bundle.Bundle{}
	if err := b.UnmarshalJSON(signature); err != nil {
		return fmt.Errorf("no Sigstore bundle: %w", err)
	}
	if b.GetMessageSignature() == nil {
		return errors.New("not the signature of a file")
	}
	_, err := t.verifier.Verify(b, verify.NewPolicy(verify.WithArtifact(bytes.NewReader(content)), t.who))
	return err
}

// statements verifies attestations, one after the other, and returns what they state. Whom they
// are about is for the caller to compare.
func (t *trust) statements(attestations []byte) ([]*intoto.Statement, error) {
	var out []*intoto.Statement
	decoder := json.NewDecoder(bytes.NewReader(attestations))
	for decoder.More() {
		var raw json.RawMessage
		if err := decoder.Decode(&raw); err != nil {
			return nil, fmt.Errorf("no Sigstore bundle: %w", err)
		}
		b := &bundle.Bundle{}
		if err := b.UnmarshalJSON(raw); err != nil {
			return nil, fmt.Errorf("no Sigstore bundle: %w", err)
		}
		result, err := t.verifier.Verify(b, verify.NewPolicy(verify.WithoutArtifactUnsafe(), t.who))
		if err != nil {
			return nil, err
		}
		if result.Statement == nil {
			return nil, errors.New("no attestation")
		}
		out = append(out, result.Statement)
	}
	if len(out) == 0 {
		return nil, errors.New("no attestation is there")
	}
	return out, nil
}

// subjects returns the SHA-256 of each subject of a statement by its name.
func subjects(s *intoto.Statement) (map[string]string, error) {
	out := map[string]string{}
	for _, subject := range s.GetSubject() {
		sum := subject.GetDigest()["sha256"]
		if raw, err := hex.DecodeString(sum); err != nil || len(raw) != 32 {
			return nil, fmt.Errorf("subject %q has no SHA-256", subject.GetName())
		}
		if _, twice := out[subject.GetName()]; twice {
			return nil, fmt.Errorf("subject %q is there twice", subject.GetName())
		}
		out[subject.GetName()] = sum
	}
	return out, nil
}
