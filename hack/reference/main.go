// Command reference writes the pages of docs/reference that follow from the code: the
// fields of a Transaction and of a PackageTransaction from their CRDs, the flags of janusd from its help, and the metrics
// from what janusd registers.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

func main() {
	output := flag.String("output", "docs/reference", "directory for the pages")
	flag.Parse()
	if err := write(*output); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// write writes all pages.
func write(directory string) error {
	crd, err := os.ReadFile("deploy/crd/backup.janus.io_transactions.yaml")
	if err != nil {
		return fmt.Errorf("read the CRD: %w", err)
	}
	help, err := exec.Command("go", "run", "./cmd/janusd", "--help").Output()
	if err != nil {
		return fmt.Errorf("ask janusd for its flags: %w", err)
	}
	fields, err := fieldsPage(crd, fieldsIntro, "a Transaction")
	if err != nil {
		return err
	}
	if crd, err = os.ReadFile("deploy/packages/objects/pkg.janus.io_packagetransactions.yaml"); err != nil {
		return fmt.Errorf("read the CRD: %w", err)
	}
	packageFields, err := fieldsPage(crd, packageFieldsIntro, "a PackageTransaction")
	if err != nil {
		return err
	}
	metrics, err := metricsPage()
	if err != nil {
		return err
	}
	for name, page := range map[string]string{
		"transaction.md": fields, "packagetransaction.md": packageFields, "janusd.md": flagsPage(string(help)), "metrics.md": metrics,
	} {
		if err := os.WriteFile(filepath.Join(directory, name), []byte(page), 0o600); err != nil {
			return fmt.Errorf("write a page: %w", err)
		}
	}
	return nil
}
