package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

func main() {
	vale := flag.String("vale", "bin/vale", "the linter")
	level := flag.String("level", "error", "the least that is printed: error, or warning")
	flag.Parse()
	if err := lint(os.Stdout, *vale, *level, flag.Args()); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "prose:", err)
		os.Exit(1)
	}
}

var errFound = errors.New("reword the lines above; the rules are in hack/prose/styles")

// lint checks files, and returns errFound if there is anything to mend.
func lint(to io.Writer, vale, level string, files []string) error {
	dir, err := os.MkdirTemp("", "prose-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	args := append([]string{"--config=.vale.ini", "--output=line", "--minAlertLevel=" + level}, files...)
	for _, file := range files {
		if !speaks(file) {
			continue
		}
		text, err := write(dir, file)
		if err != nil {
			return err
		}
		args = append(args, text)
	}
	command := exec.Command(vale, args...)
	command.Stderr = os.Stderr
	out, err := command.Output()
	_, _ = io.WriteString(to, inSources(string(out), dir))
	var exit *exec.ExitError
	if errors.As(err, &exit) && len(out) > 0 {
		return errFound
	}
	return err
}

// silent are Go files whose strings are for tests, and for those who develop Janus.
var silent = regexp.MustCompile(`_test\.go$|^(hack|test)/`)

func speaks(file string) bool {
	return strings.HasSuffix(file, ".go") && !silent.MatchString(file)
}

// write writes the messages of a Go file to one of that name in dir.
func write(dir, file string) (string, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	found, err := messages(file, text)
	if err != nil {
		return "", err
	}
	to := filepath.Join(dir, file+".txt")
	if err := os.MkdirAll(filepath.Dir(to), 0o750); err != nil {
		return "", err
	}
	return to, os.WriteFile(to, []byte(found), 0o600) //nolint:gosec // the Makefile names the file, and dir is ours
}

// inSources names the Go file instead of that of its messages, which has the same lines, and
// what is wrong without the name of the rule.
func inSources(out, dir string) string {
	out = strings.ReplaceAll(out, dir+string(filepath.Separator), "")
	return regexp.MustCompile(`(?m)^(.*?)(?:(\.go)\.txt)?:(\d+):(\d+):Janus\.\w+:`).ReplaceAllString(out, "$1$2:$3:$4: ")
}
