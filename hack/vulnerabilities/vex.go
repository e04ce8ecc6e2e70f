package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
)

// document is an OpenVEX document: https://github.com/openvex/spec.
type document struct {
	Context    string      `json:"@context"`
	ID         string      `json:"@id"`
	Author     string      `json:"author"`
	Timestamp  string      `json:"timestamp"`
	Version    int         `json:"version"`
	Statements []statement `json:"statements"`
}

type statement struct {
	Vulnerability   vulnerability `json:"vulnerability"`
	Products        []product     `json:"products"`
	Status          string        `json:"status"`
	Justification   string        `json:"justification,omitempty"`
	ImpactStatement string        `json:"impact_statement,omitempty"`
	ActionStatement string        `json:"action_statement,omitempty"`
}

type vulnerability struct {
	ID      string   `json:"@id"`
	Name    string   `json:"name"`
	Aliases []string `json:"aliases,omitempty"`
}

type product struct {
	ID            string      `json:"@id"`
	Subcomponents []component `json:"subcomponents"`
}

type component struct {
	ID string `json:"@id"`
}

// What OpenVEX has for a vulnerability that does no harm.
const (
	notAffected = "not_affected"
	notCalled   = "vulnerable_code_not_in_execute_path"
	notThere    = "vulnerable_code_not_present"
)

// purl is what the programs are called, as in their bills of materials.
const purl = "pkg:golang/janus.io/janus"

func load(path string) (document, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return document{}, err
	}
	var d document
	decoder := json.NewDecoder(bytes.NewReader(content))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&d); err != nil {
		return document{}, fmt.Errorf("%s: %w", path, err)
	}
	return d, nil
}

func (d document) save(path string) error {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(d); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}

// of returns the statement about a vulnerability.
func (d document) of(id string) (statement, bool) {
	i := slices.IndexFunc(d.Statements, func(s statement) bool { return s.Vulnerability.Name == id })
	if i < 0 {
		return statement{}, false
	}
	return d.Statements[i], true
}

// check reports what was found and lacks a true statement.
func (d document) check(found []finding) error {
	var errs []error
	for _, f := range found {
		s, there := d.of(f.id)
		if !there {
			errs = append(errs, fmt.Errorf("%s in %s %s: nothing is said about it (called: %t)", f.id, f.module, f.version, f.called))
			continue
		}
		errs = append(errs, s.check(f))
	}
	return errors.Join(errs...)
}

// stale reports the statements about what was not found.
func (d document) stale(found []finding) error {
	var errs []error
	for _, s := range d.Statements {
		if !slices.ContainsFunc(found, func(f finding) bool { return f.id == s.Vulnerability.Name }) {
			errs = append(errs, fmt.Errorf("%s is not found: remove its statement", s.Vulnerability.Name))
		}
	}
	return errors.Join(errs...)
}

// check compares a statement with what was found.
func (s statement) check(f finding) error {
	switch {
	case len(s.Products) != 1 || len(s.Products[0].Subcomponents) != 1 || s.Products[0].Subcomponents[0].ID != f.purl():
		return fmt.Errorf("%s: the statement is not about %s", f.id, f.purl())
	case s.Status == notAffected && f.called && s.ImpactStatement == "":
		return fmt.Errorf("%s in %s %s: a function that has it may be called, and the statement does not say why that does no harm", f.id, f.module, f.version)
	case s.Status == notAffected && (s.Justification == notThere && f.imported || s.Justification == notCalled && f.called):
		return fmt.Errorf("%s in %s %s: %s is not so", f.id, f.module, f.version, s.Justification)
	case s.Status == notAffected && s.Justification == "" && s.ImpactStatement == "":
		return fmt.Errorf("%s: the statement says no reason", f.id)
	case (s.Status == "affected" || s.Status == "under_investigation") && s.ActionStatement == "":
		return fmt.Errorf("%s: the statement does not say what is done about it", f.id)
	case s.Status != notAffected && s.Status != "affected" && s.Status != "under_investigation":
		return fmt.Errorf("%s: %q is no status", f.id, s.Status)
	}
	return nil
}

// purl is the package URL of what has the vulnerability, as in a bill of materials.
func (f finding) purl() string { return "pkg:golang/" + f.module + "@" + f.version }

// update returns the document with statements about what needs no judgement: what is not called.
// What people have written stays, as long as it is about something that is found.
func (d document) update(found []finding) document {
	var out []statement
	for _, f := range found {
		s, there := d.of(f.id)
		switch {
		case there && (f.called || s.ImpactStatement != "" || s.Status != notAffected):
			s.Products = f.products()
			out = append(out, s)
		case !f.called:
			out = append(out, f.statement())
		}
	}
	d.Statements = out
	return d
}

// statement is that about a vulnerability that is not called.
func (f finding) statement() statement {
	s := statement{
		Vulnerability: vulnerability{ID: "https://pkg.go.dev/vuln/" + f.id, Name: f.id, Aliases: f.aliases},
		Products:      f.products(), Status: notAffected, Justification: notThere,
	}
	if f.imported {
		s.Justification = notCalled
	}
	return s
}

func (f finding) products() []product {
	return []product{{ID: purl, Subcomponents: []component{{ID: f.purl()}}}}
}
