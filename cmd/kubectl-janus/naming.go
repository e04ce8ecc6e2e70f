package main

import (
	"path"
	"path/filepath"
	"regexp"
	"strings"

	"janus.io/janus/internal/bundle"
)

// nameOfSource is what a Transaction is named after that is given no name: the first file, directory
// or artifact that it is made of, else what it deletes.
func (f sources) nameOfSource() string {
	source := ""
	switch {
	case len(f.Filenames) > 0:
		source = f.Filenames[0]
	case f.Kustomize != "":
		source = f.Kustomize
	case len(f.remove) > 0:
		_, name, _ := strings.Cut(f.remove[0], "/")
		source = "delete-" + name
	}
	if strings.HasPrefix(source, bundle.Scheme) {
		source, _, _ = strings.Cut(source, "@") // A digest is no name.
		return asName(path.Base(source))
	}
	if strings.Contains(source, "://") || strings.Contains(source, "?") {
		source, _, _ = strings.Cut(source, "?")
		return asName(withoutSuffix(path.Base(source)))
	}
	if strings.HasPrefix(source, "/dev/") {
		source = "-" // A pipe of the shell, with a number.
	}
	if whole, err := filepath.Abs(source); err == nil && source != "" && source != "-" {
		source = filepath.Base(whole)
	}
	return asName(withoutSuffix(source))
}

func withoutSuffix(file string) string {
	for _, suffix := range []string{".yaml", ".yml", ".json"} {
		file = strings.TrimSuffix(file, suffix)
	}
	return file
}

// notInNames is what no name of an object has.
var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// asName makes a text one that a name may begin with.
func asName(text string) string {
	text = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(text), "-"), "-")
	if text = strings.TrimRight(text[:min(len(text), 40)], "-"); text == "" {
		return "run"
	}
	return text
}
