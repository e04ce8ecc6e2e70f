package packages

import (
	"encoding/json"
	"maps"
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
	text        string
	Permissions map[string]string
	Jobs        map[string]job
}

type job struct {
	Uses        string
	Needs       names
	Permissions map[string]string
	Steps       []struct{ Name, Uses, Run string }
}

// names are those of other jobs: one, or a list.
type names []string

func (n *names) UnmarshalJSON(content []byte) error {
	if err := json.Unmarshal(content, (*[]string)(n)); err == nil {
		return nil
	}
	*n = make(names, 1)
	return json.Unmarshal(content, &(*n)[0])
}

func (j job) commands() (out []string) {
	for _, step := range j.Steps {
		out = append(out, step.Run)
	}
	return out
}

// uses reports whether the job takes an action.
func (j job) uses(action string) bool {
	return slices.ContainsFunc(j.Steps, func(s struct{ Name, Uses, Run string }) bool { return strings.HasPrefix(s.Uses, action+"@") })
}

// workflows reads all workflows, by the name of the file.
func workflows(t *testing.T) map[string]workflow {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(harness.Root(), ".github", "workflows", "*.yaml"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	out := map[string]workflow{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		require.NoError(t, err)
		w := workflow{text: string(content)}
		require.NoError(t, yaml.Unmarshal(content, &w), file)
		out[strings.TrimSuffix(filepath.Base(file), ".yaml")] = w
	}
	return out
}

// TestActionsArePinned: a tag can be moved to other code, a commit can't.
func TestActionsArePinned(t *testing.T) {
	pinned := regexp.MustCompile(`^([a-z-]+/[a-z-]+)(?:/[a-z-]+)?@([0-9a-f]{40}) # v\d+\.\d+\.\d+$`)
	commits := map[string]string{}
	for name, w := range workflows(t) {
		for _, line := range regexp.MustCompile(`uses: (.*)`).FindAllStringSubmatch(w.text, -1) {
			if strings.HasPrefix(line[1], "./.github/workflows/") {
				continue
			}
			found := pinned.FindStringSubmatch(line[1])
			require.NotNil(t, found, "%s: %s is not named by its commit, with its version behind", name, line[1])
			if commits[found[1]] == "" {
				commits[found[1]] = found[2]
			}
			assert.Equal(t, commits[found[1]], found[2], "%s: %s is taken in two versions", name, found[1])
		}
	}
	assert.NotEmpty(t, commits)
}

// TestJobsHaveTheLeastRights: nothing is allowed that a job does not ask for, and none asks for
// more than it needs.
func TestJobsHaveTheLeastRights(t *testing.T) {
	writes := map[string][]string{
		"codeql analyze":  {"security-events"},
		"release publish": {"contents"},
		"release push":    {"packages"},
		"release sign":    {"attestations", "id-token", "packages"},
		"scorecard score": {"id-token", "security-events"},
	}
	for name, w := range workflows(t) {
		assert.NotNil(t, w.Permissions, name)
		assert.Empty(t, w.Permissions, name)
		assert.NotContains(t, w.text, "pull_request_target", name)
		for of, j := range w.Jobs {
			may := name + " " + of
			var write []string
			for what, how := range j.Permissions {
				if how == "write" {
					write = append(write, what)
				}
			}
			slices.Sort(write)
			assert.Equal(t, writes[may], write, may)
			delete(writes, may)
			for _, step := range j.Steps {
				assert.NotContains(t, step.Run, "${{", "%s: what others may choose is no part of a script", may)
			}
		}
	}
	assert.Empty(t, slices.Collect(maps.Keys(writes)), "jobs that are not there")
}

// TestTheTestWorkflow looks at what can be looked at without running it.
func TestTheTestWorkflow(t *testing.T) {
	workflow := workflows(t)["test"]
	assert.Contains(t, workflow.text, "\n  pull_request:\n")
	assert.Contains(t, workflow.Jobs["quick"].commands(), "make test")
	commands := workflow.Jobs["part"].commands()
	tests := slices.Index(commands, `make test-all PART="$PART"`)
	// A step is run by a user who may not install what the parts install where it is missing.
	require.Positive(t, tests)
	before := strings.Join(commands[:tests], "\n")
	assert.Contains(t, before, "sudo apt-get install -qq -y --no-install-recommends prometheus prometheus-alertmanager spin\n")
	for _, program := range []string{"promtool", "chromium"} {
		assert.Regexp(t, `(?m)^ln -s "\$\(command -v `+program+`\b.*\)" bin/`+program+`$`, before)
	}
	assert.NotContains(t, workflow.text, "secrets.")
}

// TestTheReleaseWorkflow looks at what can be looked at without running it.
func TestTheReleaseWorkflow(t *testing.T) {
	workflow := workflows(t)["release"]
	jobs := workflow.Jobs
	for _, of := range []string{"test", "vulnerabilities"} {
		assert.Equal(t, "./.github/workflows/"+of+".yaml", jobs[of].Uses)
	}
	assert.Equal(t, names{"test", "vulnerabilities"}, jobs["build"].Needs, "what is released was tested")
	assert.Equal(t, names{"build"}, jobs["push"].Needs)
	assert.Equal(t, names{"build", "push"}, jobs["sign"].Needs)
	assert.Equal(t, names{"build", "sign"}, jobs["verify"].Needs)
	assert.Equal(t, names{"verify"}, jobs["publish"].Needs, "what is published was checked")
	assert.Contains(t, jobs["build"].commands(),
		`make release VERSION="$VERSION" REPOSITORY="$REGISTRY/janusd" DOWNLOADS="$HOMEPAGE/releases/download/$VERSION" HOMEPAGE="$HOMEPAGE"`)
	for _, of := range []string{"sign", "publish"} {
		assert.False(t, jobs[of].uses("actions/checkout"), "%s runs nothing of what is in the repository", of)
		assert.NotContains(t, strings.Join(jobs[of].commands(), "\n"), "make ", of)
	}
	for _, secret := range regexp.MustCompile(`secrets\.(\w+)`).FindAllStringSubmatch(workflow.text, -1) {
		assert.Contains(t, []string{"GITHUB_TOKEN", "REGISTRY_TOKEN"}, secret[1])
	}

	// What it takes from the release is what a release has.
	text := strings.NewReplacer("${VERSION#v}", "1.2.3-rc.1", "${{ env.VERSION }}", "v1.2.3-rc.1", "$VERSION", "v1.2.3-rc.1").Replace(workflow.text)
	named := regexp.MustCompile(`release/(janus[\w.-]*)`).FindAllStringSubmatch(text, -1)
	require.NotEmpty(t, named)
	for _, file := range named {
		if !strings.HasSuffix(file[1], ".intoto.jsonl") {
			assert.Contains(t, released, file[1])
		}
	}
}
