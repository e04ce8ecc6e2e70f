package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/google/go-containerregistry/pkg/v1/remote"
	intoto "github.com/in-toto/attestation/go/v1"
	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/types/known/structpb"
)

const payloadType = "application/vnd.in-toto+json"

// A signer makes bundles, of what is a file and of what is a statement.
type signer func(sign.Content) ([]byte, error)

// newSigner makes a key, and returns what signs with it and its public half.
func newSigner(ctx context.Context) (signer, string, error) {
	key, err := sign.NewEphemeralKeypair(nil)
	if err != nil {
		return nil, "", err
	}
	public, err := key.GetPublicKeyPem()
	if err != nil {
		return nil, "", err
	}
	return func(c sign.Content) ([]byte, error) {
		b, err := sign.Bundle(c, key, sign.BundleOptions{Context: ctx})
		if err != nil {
			return nil, err
		}
		return compact(protojson.Marshal(b))
	}, public, nil
}

// compact takes out the spaces that protojson puts in at random.
func compact(content []byte, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	var v json.RawMessage = content
	return json.Marshal(v)
}

// runSign signs a release, its image and its chart.
func runSign(ctx context.Context, args []string, _, explain io.Writer) error {
	fs := flag.NewFlagSet("sign", flag.ContinueOnError)
	dir := fs.String("release", "", "`directory` of the release; the signatures are put there")
	version := fs.String("version", "", "`version` of the release, such as v1.2.3")
	commit := fs.String("commit", "", "`id` of the commit that it was built of")
	public := fs.String("public-key", "", "`file` for the public half of the key")
	image := fs.String("image", "", "`repository` that has the image")
	chart := fs.String("chart", "", "`repository` that has the chart")
	if err := parse(fs, args, explain, "release", "version", "public-key", "image", "chart"); err != nil {
		return err
	}
	r, err := open(*dir, *version)
	if err != nil {
		return err
	}
	signed, key, err := newSigner(ctx)
	if err != nil {
		return err
	}
	if err := os.WriteFile(*public, []byte(key), 0o600); err != nil {
		return err
	}
	images, err := at(ctx, *image)
	if err != nil {
		return err
	}
	charts, err := at(ctx, *chart)
	if err != nil {
		return err
	}
	return errors.Join(r.signFiles(signed), r.attest(signed, *commit), r.signRemote(signed, *commit, images, charts))
}

// signFiles signs each file, the checksums too.
func (r *release) signFiles(signer signer) error {
	for _, name := range append(r.names(), sumsFile) {
		content, err := os.ReadFile(r.path(name))
		if err != nil {
			return err
		}
		b, err := signer(&sign.PlainData{Data: content})
		if err != nil {
			return fmt.Errorf("sign %s: %w", name, err)
		}
		if err := os.WriteFile(r.path(name+signed), b, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// attest writes the provenance and the attestations of the bills of materials.
func (r *release) attest(signer signer, commit string) error {
	digest, err := r.digest()
	if err != nil {
		return err
	}
	archives := map[string]string{}
	for _, name := range r.archives() {
		archives[name] = r.sums[name]
	}
	images := map[string]string{"janusd": strings.TrimPrefix(digest, "sha256:")}
	return errors.Join(
		r.attestTo(signer, r.provenance(), provenanceType, r.sums, origins(r.version, commit)),
		r.attestBill(signer, r.imageBill(), images),
		r.attestBill(signer, r.pluginBill(), archives),
	)
}

func (r *release) attestBill(signer signer, bill string, of map[string]string) error {
	predicate, err := r.bill(bill)
	if err != nil {
		return err
	}
	return r.attestTo(signer, attestation(bill), billType, of, predicate)
}

// bill reads a bill of materials.
func (r *release) bill(name string) (map[string]any, error) {
	content, err := os.ReadFile(r.path(name))
	if err != nil {
		return nil, err
	}
	var out map[string]any
	return out, json.Unmarshal(content, &out)
}

func (r *release) attestTo(signer signer, file, kind string, of map[string]string, predicate map[string]any) error {
	b, err := statementBundle(signer, kind, of, predicate)
	if err != nil {
		return fmt.Errorf("attest %s: %w", file, err)
	}
	return os.WriteFile(r.path(file), append(b, '\n'), 0o600)
}

// statementBundle makes a bundle with a statement.
func statementBundle(signer signer, kind string, of map[string]string, predicate map[string]any) ([]byte, error) {
	content, err := structpb.NewStruct(predicate)
	if err != nil {
		return nil, err
	}
	s := &intoto.Statement{Type: intoto.StatementTypeUri, PredicateType: kind, Predicate: content}
	for name, sum := range of {
		s.Subject = append(s.Subject, &intoto.ResourceDescriptor{Name: name, Digest: map[string]string{"sha256": sum}})
	}
	payload, err := compact(protojson.Marshal(s))
	if err != nil {
		return nil, err
	}
	return signer(&sign.DSSEData{Data: payload, PayloadType: payloadType})
}

// origins is a provenance of a build by hand.
func origins(version, commit string) map[string]any {
	return map[string]any{
		"buildDefinition": map[string]any{
			"buildType":            "https://janus.io/builds/make-release/v1",
			"externalParameters":   map[string]any{"version": version},
			"resolvedDependencies": []any{map[string]any{"uri": "https://janus.io/janus", "digest": map[string]any{"gitCommit": commit}}},
		},
		"runDetails": map[string]any{"builder": map[string]any{"id": "https://janus.io/builders/trial"}},
	}
}

// signRemote signs the image and the chart in their registry, and attaches what is attested.
func (r *release) signRemote(signer signer, commit string, images, charts *place) error {
	digest, err := r.digest()
	if err != nil {
		return err
	}
	head, err := remote.Head(charts.Tag(strings.TrimPrefix(r.version, "v")), charts.options...)
	if err != nil {
		return err
	}
	bill, err := r.bill(r.imageBill())
	if err != nil {
		return err
	}
	return errors.Join(
		images.attach(signer, digest, signType, map[string]any{}),
		images.attach(signer, digest, provenanceType, origins(r.version, commit)),
		images.attach(signer, digest, billType, bill),
		charts.attach(signer, head.Digest.String(), signType, map[string]any{}),
	)
}
