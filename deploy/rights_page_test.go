package deploy_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	rbacv1 "k8s.io/api/rbac/v1"
)

// TestTheRightsAreThoseOfTheSecurityPage reads the table of docs/security.md.
func TestTheRightsAreThoseOfTheSecurityPage(t *testing.T) {
	page, err := os.ReadFile("../docs/security.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "## What janusd may do\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	told := map[string][]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z, ]+) \| ([^|]+) \| (everywhere|janus-system) \|`).FindAllStringSubmatch(table, -1) {
		for _, on := range regexp.MustCompile("`([^`]+)`(?: named (`[^`]+`))?").FindAllStringSubmatch(row[2], -1) {
			resource, group, _ := strings.Cut(on[1], ".")
			for verb := range strings.SplitSeq(row[1], ", ") {
				one := verb + " " + resource + "." + group + " " + strings.Trim(on[2], "`")
				told[row[3]] = append(told[row[3]], strings.TrimSpace(one))
			}
		}
	}

	in := installation{objects: build(t, ".")}
	assert.ElementsMatch(t, granted(t, into[rbacv1.ClusterRole](t, in.find(t, "ClusterRole", "janusd")).Rules), told["everywhere"])
	var own []string
	for _, object := range in.objects {
		if object.GetKind() == "Role" && strings.HasPrefix(object.GetName(), "janusd-") {
			assert.Equal(t, ownNamespace, object.GetNamespace(), object.GetName())
			own = append(own, granted(t, into[rbacv1.Role](t, object).Rules)...)
		}
	}
	assert.ElementsMatch(t, own, told[ownNamespace])
}
