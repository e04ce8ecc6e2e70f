package packages

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"

	"janus.io/janus/internal/janustest"
)

// TestTheReleaseWorkflow looks at what can be looked at without running it.
func TestTheReleaseWorkflow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(janustest.Root(), ".github", "workflows", "release.yaml"))
	require.NoError(t, err)
	var workflow struct {
		Permissions map[string]string
		Jobs        map[string]struct {
			Permissions map[string]string
			Steps       []struct{ Name, Uses, Run string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	assert.Empty(t, workflow.Permissions, "nothing is allowed that a job does not ask for")
	job := workflow.Jobs["release"]
	assert.Equal(t, map[string]string{"contents": "write", "packages": "write"}, job.Permissions)

	var commands []string
	for _, step := range job.Steps {
		if step.Uses != "" {
			assert.Regexp(t, `^[a-z-]+/[a-z-]+@v\d+\.\d+\.\d+$`, step.Uses, "an action is named by its whole version")
		}
		commands = append(commands, step.Run)
	}
	tests := slices.Index(commands, "make test")
	release := slices.Index(commands,
		`make release VERSION="$VERSION" REPOSITORY="$REGISTRY/janusd" DOWNLOADS="$HOMEPAGE/releases/download/$VERSION" HOMEPAGE="$HOMEPAGE"`)
	assert.Greater(t, release, tests, "what is released was tested")
	// A step is run by a user who may not install what make test installs where it is missing.
	require.Positive(t, tests)
	before := strings.Join(commands[:tests], "\n")
	assert.Contains(t, before, "sudo apt-get install -qq -y --no-install-recommends prometheus\n")
	for _, program := range []string{"promtool", "chromium"} {
		assert.Regexp(t, `(?m)^ln -s "\$\(command -v `+program+`\b.*\)" bin/`+program+`$`, before)
	}
	for _, secret := range regexp.MustCompile(`secrets\.(\w+)`).FindAllStringSubmatch(string(text), -1) {
		assert.Equal(t, "GITHUB_TOKEN", secret[1])
	}

	// What it takes from dist/release is what a release has.
	named := regexp.MustCompile(`dist/release/([^"\s]*)`).FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, named)
	for _, file := range named {
		of := strings.NewReplacer("${VERSION#v}", "1.2.3-rc.1", "$VERSION", "v1.2.3-rc.1").Replace(file[1])
		if of != "*" {
			assert.Contains(t, released, of)
		}
	}
}
