package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
)

// The copy of the data: a version of golang.org/x/vulndb, and its checksum as in a go.sum.
const (
	data    = "golang.org/x/vulndb@v0.0.0-20261105234957-e22db6528018"
	dataSum = "h1:mfngRv0Yoh0VApsXKEN82CjD99kl7mtparN3bs3JnqI="
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	database := flag.String("database", "", "`URL` of the vulnerability database (default: the pinned copy)")
	vex := flag.String("vex", "janus.openvex.json", "`file` of the statements, relative to this module")
	root := flag.String("root", "../..", "`directory` of the module that is searched")
	update := flag.Bool("update", false, "write the statements that need no judgement")
	std := flag.Bool("std", false, "fail if a newer patch of Go has fixed what may be called in its standard library")
	flag.Parse()
	if err := run(ctx, *root, *vex, *database, *update, *std); err != nil {
		fmt.Fprintln(os.Stderr, "vulnerabilities:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root, vex, database string, update, std bool) error {
	live := database != ""
	if !live {
		var err error
		if database, err = pinned(ctx); err != nil {
			return err
		}
	}
	output, err := search(ctx, root, database)
	if err != nil {
		return err
	}
	all, err := read(output)
	if err != nil {
		return err
	}
	found, ofGo := divide(all)
	d, err := load(vex)
	if err != nil {
		return err
	}
	if update {
		d = d.update(found)
		if err := d.save(vex); err != nil {
			return err
		}
	}
	if err := d.check(found); err != nil {
		return fmt.Errorf("%w\nsee hack/vulnerabilities/doc.go", err)
	}
	fmt.Printf("%d known vulnerabilities in the modules that the programs are built of; %s has a statement about each\n", len(found), vex)
	// The pinned copy may lack what the data of the day have.
	return errors.Join(note(d.stale(found), live), note(newerGo(ofGo), std))
}

// note returns what is wrong if it has to fail, and prints it otherwise.
func note(err error, fail bool) error {
	if err != nil && !fail {
		fmt.Println("note:", err)
		return nil
	}
	return err
}

// pinned returns the URL of the pinned copy of the data.
func pinned(ctx context.Context) (string, error) {
	download := exec.CommandContext(ctx, "go", "mod", "download", "-json", data)
	download.Stderr = os.Stderr
	said, err := download.Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s: %w\n%s", data, err, said)
	}
	var module struct{ Dir, Sum string }
	if err := json.Unmarshal(said, &module); err != nil {
		return "", err
	}
	if module.Sum != dataSum {
		return "", fmt.Errorf("%s has the checksum %s, and not %s", data, module.Sum, dataSum)
	}
	return "file://" + filepath.ToSlash(filepath.Join(module.Dir, "data", "osv")), nil
}

// search runs govulncheck for the programs.
func search(ctx context.Context, root, database string) (io.Reader, error) {
	tool := exec.CommandContext(ctx, "go", "tool", "-n", "govulncheck")
	tool.Stderr = os.Stderr
	path, err := tool.Output()
	if err != nil {
		return nil, fmt.Errorf("go tool -n govulncheck: %w", err)
	}
	check := exec.CommandContext(ctx, string(bytes.TrimSpace(path)), "-format=json", "-db="+database, "./cmd/janusd", "./cmd/kubectl-janus")
	check.Dir, check.Stderr = root, os.Stderr
	said, err := check.Output()
	if err != nil {
		return nil, fmt.Errorf("govulncheck: %w", err)
	}
	return bytes.NewReader(said), nil
}
