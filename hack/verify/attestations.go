package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"strings"

	intoto "github.com/in-toto/attestation/go/v1"
)

// The types of what is attested.
const (
	provenanceType = "https://slsa.dev/provenance/v1"
	billType       = "https://cyclonedx.org/bom"
	// signType is what cosign attests when it signs an image.
	signType = "https://sigstore.dev/cosign/sign/v1"
)

// checkSignatures verifies the signature of each file, the checksums' too.
func (r *release) checkSignatures(t *trust) error {
	var errs []error
	for _, name := range append(r.names(), sumsFile) {
		content, err := os.ReadFile(r.path(name))
		errs = append(errs, err)
		signature, missing := os.ReadFile(r.path(name + signed))
		errs = append(errs, missing)
		if err != nil || missing != nil {
			continue
		}
		if err := t.blob(content, signature); err != nil {
			errs = append(errs, fmt.Errorf("signature of %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}

// origin says where a release must come from; what is empty is not compared.
type origin struct{ builder, commit string }

// checkProvenance verifies the provenance of all files.
func (r *release) checkProvenance(t *trust, from origin) error {
	statement, err := r.statement(t, r.provenance(), provenanceType)
	if err != nil {
		return err
	}
	named, err := subjects(statement)
	if err != nil {
		return fmt.Errorf("%s: %w", r.provenance(), err)
	}
	if !maps.Equal(named, r.sums) {
		return fmt.Errorf("%s is not of the files in %s: it is of %v", r.provenance(), sumsFile, named)
	}
	if err := from.check(statement); err != nil {
		return fmt.Errorf("%s: %w", r.provenance(), err)
	}
	return nil
}

// statement returns the one that a file of the release has, verified and of a type.
func (r *release) statement(t *trust, file, kind string) (*intoto.Statement, error) {
	content, err := os.ReadFile(r.path(file))
	if err != nil {
		return nil, err
	}
	found, err := t.statements(content)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(found) != 1 || found[0].GetPredicateType() != kind {
		return nil, fmt.Errorf("%s has %d attestations, the first a %s, and not one %s", file, len(found), found[0].GetPredicateType(), kind)
	}
	return found[0], nil
}

// provenance is what is read of SLSA's predicate.
type provenance struct {
	BuildDefinition struct {
		BuildType            string `json:"buildType"`
		ResolvedDependencies []struct {
			URI    string            `json:"uri"`
			Digest map[string]string `json:"digest"`
		} `json:"resolvedDependencies"`
	} `json:"buildDefinition"`
	RunDetails struct {
		Builder struct {
			ID string `json:"id"`
		} `json:"builder"`
	} `json:"runDetails"`
}

// check reports what a provenance lacks, or says otherwise.
func (o origin) check(s *intoto.Statement) error {
	raw, err := json.Marshal(s.GetPredicate().AsMap())
	if err != nil {
		return err
	}
	var p provenance
	if err := json.Unmarshal(raw, &p); err != nil {
		return err
	}
	if p.BuildDefinition.BuildType == "" || p.RunDetails.Builder.ID == "" {
		return errors.New("the provenance names no kind of build or no builder")
	}
	if !strings.HasPrefix(p.RunDetails.Builder.ID, o.builder) {
		return fmt.Errorf("the builder is %s, and not %s", p.RunDetails.Builder.ID, o.builder)
	}
	for _, d := range p.BuildDefinition.ResolvedDependencies {
		if o.commit != "" && d.Digest["gitCommit"] == o.commit {
			return nil
		}
	}
	if o.commit != "" {
		return fmt.Errorf("the provenance does not name the commit %s", o.commit)
	}
	return nil
}

// checkBills verifies the attestations of the bills of materials.
func (r *release) checkBills(t *trust) error {
	digest, err := r.digest()
	if err != nil {
		return err
	}
	archives := map[string]string{}
	for _, name := range r.archives() {
		archives[name] = r.sums[name]
	}
	return errors.Join(
		r.checkBill(t, r.imageBill(), func(named map[string]string) error {
			for _, sum := range named {
				if len(named) == 1 && "sha256:"+sum == digest {
					return nil
				}
			}
			return fmt.Errorf("it is not of the image %s but of %v", digest, named)
		}),
		r.checkBill(t, r.pluginBill(), func(named map[string]string) error {
			if !maps.Equal(named, archives) {
				return fmt.Errorf("it is not of the archives but of %v", named)
			}
			return nil
		}),
	)
}

func (r *release) checkBill(t *trust, bill string, of func(named map[string]string) error) error {
	file := attestation(bill)
	statement, err := r.statement(t, file, billType)
	if err != nil {
		return err
	}
	named, err := subjects(statement)
	if err == nil {
		err = of(named)
	}
	if err == nil {
		err = r.sameBill(bill, statement)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}

// sameBill compares the bill that a statement has with that of the release.
func (r *release) sameBill(bill string, s *intoto.Statement) error {
	content, err := os.ReadFile(r.path(bill))
	if err != nil {
		return err
	}
	var want map[string]any
	if err := json.Unmarshal(content, &want); err != nil {
		return fmt.Errorf("%s: %w", bill, err)
	}
	if !reflect.DeepEqual(want, s.GetPredicate().AsMap()) {
		return fmt.Errorf("the bill is not that of %s", bill)
	}
	return nil
}
