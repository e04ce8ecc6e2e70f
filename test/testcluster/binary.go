package testcluster

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
)

// EmulateVariable names the environment variable with the version of Kubernetes, such as 1.33,
// whose API and features the clusters of tests keep to.
const EmulateVariable = "JANUS_CLUSTER_EMULATES"

// ClusterVariable names the environment variable with the path of another janus-cluster.
const ClusterVariable = "JANUS_CLUSTER_BINARY"

// modulePath is the module whose root holds bin and hack.
const modulePath = "janus.io/janus"

// binary is a program that is built from a module inside the repository.
type binary struct {
	// name is the file in bin.
	name string
	// source is the directory of the module, relative to the root.
	source string
	// override is the environment variable that names another file.
	override string
	// cost says how long a first build takes.
	cost string
	// pkg is the package of the program, if it is not the module itself.
	pkg string
	// link is what its linker is told besides.
	link string
}

var (
	clusterBinary = binary{name: "janus-cluster", source: "hack/cluster", override: ClusterVariable, cost: "4 to 5 minutes"}
	kwokBinary    = binary{name: "janus-kwok", source: "hack/kwok", override: "JANUS_KWOK_BINARY", cost: "1 to 2 minutes"}
	helmBinary    = binary{name: "helm", source: "hack/helm", override: "JANUS_HELM_BINARY", cost: "2 to 3 minutes", pkg: "helm.sh/helm/v4/cmd/helm"}
	fluxBinary    = binary{name: "flux-apply", source: "hack/gitops", override: "JANUS_FLUX_BINARY", cost: "2 minutes", pkg: "./flux"}
	argoBinary    = binary{name: "argocd-sync", source: "hack/gitops", override: "JANUS_ARGOCD_BINARY", cost: "3 minutes", pkg: "./argocd"}
	// Packages that want a version of Crossplane ask it for its own.
	crossplaneBinary = binary{
		name: "crossplane", source: "hack/crossplane", override: "JANUS_CROSSPLANE_BINARY", cost: "5 minutes",
		pkg: "github.com/crossplane/crossplane/v2/cmd/crossplane", link: " -X github.com/crossplane/crossplane/v2/internal/version.version=" + CrossplaneVersion,
	}
)

// CrossplaneVersion is the version of Crossplane that tests run. That in the go.mod of
// hack/crossplane is the same.
const CrossplaneVersion = "v2.1.3"

// Crossplane returns the path of the pinned Crossplane, which is built first if it is missing.
func Crossplane() (string, error) { return crossplaneBinary.find() }

// Helm returns the path of the pinned helm, which is built first if it is missing.
func Helm() (string, error) { return helmBinary.find() }

// Flux returns the path of a program that applies as Flux's kustomize-controller does, which is
// built first if it is missing.
func Flux() (string, error) { return fluxBinary.find() }

// ArgoCD returns the path of a program that syncs as Argo CD does, which is built first if it is
// missing.
func ArgoCD() (string, error) { return argoBinary.find() }

// find returns the path of the binary, and builds it first if it is missing.
func (b binary) find() (string, error) {
	if path := os.Getenv(b.override); path != "" {
		abs, err := filepath.Abs(path)
		if err != nil {
			return "", fmt.Errorf("%s=%s: %w", b.override, path, err)
		}
		if _, err := os.Stat(abs); err != nil {
			return "", fmt.Errorf("%s: %w", b.override, err)
		}
		return abs, nil
	}
	root, err := Root()
	if err != nil {
		return "", fmt.Errorf("find %s: %w", b.name, err)
	}
	path := filepath.Join(root, "bin", b.name)
	if present, err := exists(path); present || err != nil {
		return path, err
	}
	return path, b.build(root, path)
}

// Root returns the top of the repository, which the working directory is in.
func Root() (string, error) {
	start, err := os.Getwd()
	if err != nil {
		return "", err
	}
	return repositoryRoot(start)
}

// repositoryRoot walks up from dir to the go.mod of this module.
func repositoryRoot(dir string) (string, error) {
	for at := dir; ; at = filepath.Dir(at) {
		content, err := os.ReadFile(filepath.Join(at, "go.mod"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		for line := range strings.Lines(string(content)) {
			if strings.TrimSpace(line) == "module "+modulePath {
				return at, nil
			}
		}
		if at == filepath.Dir(at) {
			return "", fmt.Errorf("no go.mod of %s in %s or above", modulePath, dir)
		}
	}
}

// build builds the binary at path, unless another process has done so by the
// time the lock is held. The lock ends with the process that holds it.
func (b binary) build(root, path string) (err error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return fmt.Errorf("build %s: %w", b.name, err)
	}
	lock, err := os.OpenFile(filepath.Join(filepath.Dir(path), "."+b.name+".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return fmt.Errorf("build %s: %w", b.name, err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	if err := b.acquire(lock); err != nil {
		return err
	}
	if present, err := exists(path); present || err != nil {
		return err
	}
	return b.compile(filepath.Join(root, b.source), path)
}

// acquire waits for the lock and says so if it has to.
func (b binary) acquire(lock *os.File) error {
	fd := int(lock.Fd())
	err := syscall.Flock(fd, syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		progress("waiting for another test process that builds %s", b.name)
		err = syscall.Flock(fd, syscall.LOCK_EX)
	}
	if err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return nil
}

// compile runs go build and puts the result at path in one step.
func (b binary) compile(source, path string) error {
	progress("building %s from %s, which takes %s the first time", b.name, b.source, b.cost)
	tmp := path + ".new"
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w"+b.link, "-o", tmp, cmp.Or(b.pkg, "."))
	cmd.Dir = source
	// Flags that are meant for the tests of this module must not reach it.
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-buildvcs=false", "PWD="+source)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build in %s: %w\n%s", source, err, said.Bytes())
	}
	if err := os.Rename(tmp, path); err != nil {
		return fmt.Errorf("build %s: %w", b.name, err)
	}
	progress("built %s", path)
	return nil
}

func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// progress tells anyone who watches the tests why nothing happens for a while.
func progress(format string, args ...any) {
	_, _ = fmt.Fprintf(os.Stderr, "testcluster: "+format+"\n", args...)
}
