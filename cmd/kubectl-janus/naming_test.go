package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/cli-runtime/pkg/resource"
)

func TestATransactionIsNamedAfterItsManifests(t *testing.T) {
	of := func(files ...string) sources {
		return sources{FilenameOptions: resource.FilenameOptions{Filenames: files}}
	}
	for _, c := range []struct {
		from sources
		want string
	}{
		{of("app.yaml"), "app"},
		{of("deploy/My App_v2.yml", "other.yaml"), "my-app-v2"},
		{of("overlays/production/"), "production"},
		{of("."), "kubectl-janus"}, // the directory of the test
		{of("-"), "run"},
		{of("/dev/fd/63"), "run"},
		{of("https://example.org/install/v1/all.yaml?ref=x"), "all"},
		{of("oci://ghcr.io/example/app:v2"), "app-v2"},
		{of("oci://ghcr.io/example/app@sha256:0123"), "app"},
		{sources{FilenameOptions: resource.FilenameOptions{Kustomize: "overlays/staging"}}, "staging"},
		{sources{FilenameOptions: resource.FilenameOptions{Kustomize: "https://example.org/repo//base?ref=v1"}}, "base"},
		{sources{remove: []string{"configmap/old", "secret/x"}}, "delete-old"},
		{of("---.yaml"), "run"},
		{of("a-very-long-name-of-a-file-that-says-a-lot-of-what-is-in-it.yaml"), "a-very-long-name-of-a-file-that-says-a-l"},
	} {
		assert.Equal(t, c.want, c.from.nameOfSource(), "%v", c.from)
	}
}
