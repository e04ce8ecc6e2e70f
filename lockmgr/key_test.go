package lockmgr

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"janus.io/janus/internal/objectid"
)

var named = []struct {
	because string
	key     Key
}{
	{"a plain name", deployment("shop", "web")},
	{"no namespace, and a colon", clusterRole("system:foo")},
	{"upper case, underscore and colon", clusterRole("A_b:c")},
	{"nothing legal in the name", clusterRole(":::")},
	{"letters beyond ASCII", clusterRole("Zoë")},
	{"dots", keyOf("apiextensions.k8s.io", "customresourcedefinitions", "CustomResourceDefinition", "", "widgets.example.com")},
	{"a kind of one group", keyOf("", "events", "Event", "shop", "web")},
	{"the same kind of another group", keyOf("events.k8s.io", "events", "Event", "shop", "web")},
	{"a name that could be namespace and name", deployment("a", "b-c")},
	{"a namespace that could be namespace and kind", deployment("a-deployment", "b-c")},
	{"the longest name", deployment("shop", strings.Repeat("a", 253))},
	{"another longest name that differs where it is cut", deployment("shop", strings.Repeat("a", 252)+"b")},
	{"a cut after a hyphen", deployment("n", strings.Repeat("a", 217)+"."+strings.Repeat("b", 30))},
}

func TestLeaseNamesAreAsEver(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, n := range named {
		fmt.Fprintf(&b, "# %s\n%s\n%s\n\n", n.because, n.key, n.key.LeaseName())
	}
	path := filepath.Join("testdata", "lease-names.txt")
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, string(want), b.String(), "a process with other names would not exclude one with these")
}

func TestLeaseNamesAreLegalAndDiffer(t *testing.T) {
	t.Parallel()
	seen := map[string]Key{}
	for _, n := range named {
		name := n.key.LeaseName()
		require.Empty(t, validation.IsDNS1123Subdomain(name), name)
		require.NotContains(t, seen, name)
		seen[name] = n.key
	}
}

func TestLeaseNamesAreAcceptedByTheAPIServer(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, n := range named {
		lease := newLease(holder("a"), n.key, w.away(n.key), w.clock.Now())
		_, err := w.admin.CoordinationV1().Leases(w.own).Create(t.Context(), lease, metav1.CreateOptions{DryRun: []string{"All"}})
		require.NoError(t, err, n.because)
	}
}

func FuzzLeaseNamesAreLegal(f *testing.F) {
	for _, n := range named {
		f.Add(n.key.Group, n.key.Resource, n.key.Kind, n.key.Namespace, n.key.Name)
	}
	f.Fuzz(func(t *testing.T, group, resource, kind, namespace, name string) {
		lease := keyOf(group, resource, kind, namespace, name).LeaseName()
		require.Empty(t, validation.IsDNS1123Subdomain(lease), lease)
		require.Regexp(t, "^janus-lock-", lease)
	})
}

func TestVersionsOfOneKindAreOneTargetAndKindsOfTwoGroupsAreTwo(t *testing.T) {
	t.Parallel()
	// A Key has no version: this is for anyone who thinks of adding one.
	require.Equal(t, 3, reflect.TypeFor[Key]().NumField())
	require.Equal(t, 4, reflect.TypeFor[objectid.ID]().NumField())
	other := deployment("shop", "web")
	other.Group = "extensions"
	require.NotEqual(t, deployment("shop", "web").LeaseName(), other.LeaseName())
	require.NotEqual(t, deployment("shop", "web").hash(), other.hash())
}

func TestKindIsNoPartOfTheIdentity(t *testing.T) {
	t.Parallel()
	other := deployment("shop", "web")
	other.Kind = "Other"
	require.Equal(t, other.hash(), deployment("shop", "web").hash())
	require.Zero(t, other.compare(deployment("shop", "web")))
	require.Len(t, inOrder([]Key{other, deployment("shop", "web")}), 1)
}

func TestWhetherALockIsSharedIsNoPartOfTheIdentity(t *testing.T) {
	t.Parallel()
	key := deployment("shop", "web")
	require.Equal(t, key.LeaseName(), shared(key).LeaseName())
	require.Zero(t, key.compare(shared(key)))
	require.Equal(t, []Key{key}, inOrder([]Key{shared(key), key, shared(key)}))
	require.Equal(t, []Key{shared(key)}, inOrder([]Key{shared(key), shared(key)}))
}

func TestLessIsATotalOrder(t *testing.T) {
	t.Parallel()
	keys := []Key{
		keyOf("", "events", "", "a", "a"), keyOf("", "events", "", "a", "b"), keyOf("", "events", "", "b", "a"),
		keyOf("", "pods", "", "a", "a"), keyOf("apps", "deployments", "", "a", "a"),
	}
	for i, a := range keys {
		for j, b := range keys {
			require.Equal(t, i < j, a.Less(b), "%s < %s", a, b)
		}
	}
	given := []Key{keys[3], keys[1], keys[4], keys[1], keys[0], keys[2], keys[3]}
	before := slices.Clone(given)
	require.Equal(t, keys, inOrder(given))
	require.Equal(t, before, given, "the caller's list is not touched")
}
