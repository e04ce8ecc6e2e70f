package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
)

// options is what the flags of check say.
type options struct {
	dir, version string
	from         origin
	images       *place
	charts       *place
	tamper       bool
}

// runCheck checks a release.
func runCheck(ctx context.Context, args []string, out, explain io.Writer) error {
	fs := flag.NewFlagSet("check", flag.ContinueOnError)
	var o options
	var who signers
	who.addTo(fs)
	fs.StringVar(&o.dir, "release", "", "`directory` of the release's files, with their signatures")
	fs.StringVar(&o.version, "version", "", "`version` of the release, such as v1.2.3")
	fs.StringVar(&o.from.commit, "commit", "", "`id` of the commit that the provenance must name (default any)")
	fs.StringVar(&o.from.builder, "builder", "", "how the `URL` of the builder in the provenance must begin (default any)")
	image := fs.String("image", "", "`repository` that has the image (default: the registry is not looked at)")
	chart := fs.String("chart", "", "`repository` that has the chart (default: likewise)")
	fs.BoolVar(&o.tamper, "tamper", false, "then change a byte of each file, and fail unless that is noticed")
	if err := parse(fs, args, explain, "release", "version"); err != nil {
		return err
	}
	t, err := who.trust()
	if err != nil {
		return err
	}
	if *image != "" {
		if o.images, err = at(ctx, *image); err != nil {
			return err
		}
	}
	if *chart != "" {
		if o.charts, err = at(ctx, *chart); err != nil {
			return err
		}
	}
	if err := o.check(t, out); err != nil {
		return err
	}
	if o.tamper {
		return o.tryTampered(ctx, t, out)
	}
	return nil
}

// check does each check, says how it went, and returns what is wrong.
func (o options) check(t *trust, out io.Writer) error {
	r, err := open(o.dir, o.version)
	if err != nil {
		return err
	}
	checks := []struct {
		what string
		do   func() error
	}{
		{"the files are those that SHA256SUMS lists", r.check},
		{"each file is signed", func() error { return r.checkSignatures(t) }},
		{"the provenance is of all files", func() error { return r.checkProvenance(t, o.from) }},
		{"the image is whole, and the manifests, the chart and Krew name what was released", r.checkContents},
		{"the bills of materials list what the programs were built of", r.checkModules},
		{"the bills of materials are attested for the image and the archives", func() error { return r.checkBills(t) }},
	}
	add := func(what string, do func() error) {
		checks = append(checks, struct {
			what string
			do   func() error
		}{what, do})
	}
	if o.images != nil {
		add("the registry has the image, signed, with provenance and bill of materials", func() error { return r.checkRemoteImage(t, o.images) })
	}
	if o.charts != nil {
		add("the registry has the chart, signed", func() error { return r.checkRemoteChart(t, o.charts) })
	}
	var errs []error
	for _, c := range checks {
		said := "ok  "
		err := c.do()
		if err != nil {
			said = "FAIL"
			errs = append(errs, err)
		}
		_, _ = fmt.Fprintf(out, "%s %s\n", said, c.what)
	}
	return errors.Join(errs...)
}
