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

	"janus.io/janus/test/harness"
)

type workflow struct {
	Permissions map[string]string
	Jobs        map[string]job
}

type job struct {
	Uses        string
	Needs       string
	Permissions map[string]string
	Steps       []struct{ Name, Uses, Run string }
}

func (j job) commands() (out []string) {
	for _, step := range j.Steps {
		out = append(out, step.Run)
	}
	return out
}

// safe looks at what every workflow has to keep to.
func (w workflow) safe(t *testing.T) {
	assert.Empty(t, w.Permissions, "nothing is allowed that a job does not ask for")
	for _, j := range w.Jobs {
		for _, step := range j.Steps {
			if step.Uses != "" {
				assert.Regexp(t, `^[a-z-]+/[a-z-]+@v\d+\.\d+\.\d+$`, step.Uses, "an action is named by its whole version")
			}
		}
	}
}

// TestTheTestWorkflow looks at what can be looked at without running it.
func TestTheTestWorkflow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(harness.Root(), ".github", "workflows", "test.yaml"))
	require.NoError(t, err)
	var workflow workflow
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	workflow.safe(t)
	assert.Contains(t, workflow.Jobs["quick"].commands(), "make test")
	commands := workflow.Jobs["part"].commands()
	tests := slices.Index(commands, `make test-all PART="$PART"`)
	// A step is run by a user who may not install what the parts install where it is missing.
	require.Positive(t, tests)
	before := strings.Join(commands[:tests], "\n")
	assert.Contains(t, before, "sudo apt-get install -qq -y --no-install-recommends prometheus spin\n")
	for _, program := range []string{"promtool", "chromium"} {
		assert.Regexp(t, `(?m)^ln -s "\$\(command -v `+program+`\b.*\)" bin/`+program+`$`, before)
	}
	assert.NotContains(t, string(text), "secrets.")
}

// TestTheReleaseWorkflow looks at what can be looked at without running it.
func TestTheReleaseWorkflow(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(harness.Root(), ".github", "workflows", "release.yaml"))
	require.NoError(t, err)
	var workflow workflow
	require.NoError(t, yaml.Unmarshal(text, &workflow))
	workflow.safe(t)
	job := workflow.Jobs["release"]
	assert.Equal(t, map[string]string{"contents": "write", "packages": "write"}, job.Permissions)
	assert.Contains(t, job.commands(),
		`make release VERSION="$VERSION" REPOSITORY="$REGISTRY/janusd" DOWNLOADS="$HOMEPAGE/releases/download/$VERSION" HOMEPAGE="$HOMEPAGE"`)
	assert.Equal(t, "test", job.Needs, "what is released was tested")
	assert.Equal(t, "./.github/workflows/test.yaml", workflow.Jobs["test"].Uses)
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
