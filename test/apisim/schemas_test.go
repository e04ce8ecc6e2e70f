package apisim_test

import (
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/testcluster"
)

var update = flag.Bool("update", false, "write the schemas of the built-in kinds")

// modelled are the built-in kinds whose schemas are kept, by document.
var modelled = map[string][]string{
	"api/v1":                            {"Namespace", "ConfigMap", "Secret", "ServiceAccount", "Event"},
	"apis/coordination.k8s.io/v1":       {"Lease"},
	"apis/apiextensions.k8s.io/v1":      {"CustomResourceDefinition"},
	"apis/events.k8s.io/v1":             {"Event"},
	"apis/rbac.authorization.k8s.io/v1": {"Role", "RoleBinding"},
}

// The schemas are those of the real server, less what is meant for people and what
// belongs to other kinds. With -update they are written again.
func TestTheSchemasAreThoseOfTheRealServer(t *testing.T) {
	real := newSide(t, "the real server", testcluster.Shared(t).Config())
	for path, kinds := range modelled {
		resp, _ := real.open(t.Context(), t, operation{method: http.MethodGet, path: "/openapi/v3/" + path})
		defer func() { _ = resp.Body.Close() }()
		data, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		file := "schemas/" + strings.ReplaceAll(strings.Replace(strings.TrimPrefix(path, "apis/"), "api/", "core/", 1), "/", "_") + ".json"
		got := pruned(t, data, kinds)
		if *update {
			require.NoError(t, os.WriteFile(file, got, 0o644))
			continue
		}
		want, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.JSONEq(t, string(want), string(got), "%s is out of date: run the test with -update", file)
	}
}

// pruned keeps the definitions that kinds are made of.
func pruned(t *testing.T, data []byte, kinds []string) []byte {
	t.Helper()
	var document struct {
		Components struct {
			Schemas map[string]object `json:"schemas"`
		} `json:"components"`
	}
	require.NoError(t, json.Unmarshal(data, &document))
	all, kept := document.Components.Schemas, map[string]any{}
	var keep func(name string)
	keep = func(name string) {
		if _, ok := kept[name]; ok {
			return
		}
		kept[name] = undescribed(all[name])
		for _, other := range mentioned(all[name]) {
			keep(other)
		}
	}
	for name, schema := range all {
		list, _ := schema["x-kubernetes-group-version-kind"].([]any)
		if len(list) == 1 && slices.Contains(kinds, list[0].(object)["kind"].(string)) {
			keep(name)
		}
	}
	out, err := json.Marshal(object{"components": object{"schemas": kept}})
	require.NoError(t, err)
	return append(out, '\n')
}

// undescribed drops descriptions. A property of that name is kept.
func undescribed(x any) any {
	switch x := x.(type) {
	case object:
		out := object{}
		for k, v := range x {
			if _, isText := v.(string); k == "description" && isText {
				continue
			}
			if fields, ok := v.(object); ok && k == "properties" {
				of := object{}
				for name, field := range fields {
					of[name] = undescribed(field)
				}
				out[k] = of
				continue
			}
			out[k] = undescribed(v)
		}
		return out
	case []any:
		out := make([]any, len(x))
		for i := range x {
			out[i] = undescribed(x[i])
		}
		return out
	default:
		return x
	}
}

func mentioned(x any) []string {
	var out []string
	switch x := x.(type) {
	case object:
		for k, v := range x {
			if ref, ok := v.(string); ok && k == "$ref" {
				out = append(out, ref[strings.LastIndex(ref, "/")+1:])
			}
			out = append(out, mentioned(v)...)
		}
	case []any:
		for _, v := range x {
			out = append(out, mentioned(v)...)
		}
	}
	return out
}

// discovered is what discovery says of a resource.
type discovered struct {
	Resource, SingularResource, Scope string
	ResponseKind                      object
	ShortNames, Categories, Verbs     []string
	Subresources                      []struct{ Subresource string }
}

func (s *side) discovered(t *testing.T, path string) map[string]discovered {
	t.Helper()
	resp, _ := s.open(t.Context(), t, operation{method: http.MethodGet, path: path, accept: "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"})
	defer func() { _ = resp.Body.Close() }()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Versions []struct {
				Version   string
				Resources []discovered
			}
		}
	}
	require.NoError(t, json.NewDecoder(resp.Body).Decode(&list))
	out := map[string]discovered{}
	for _, group := range list.Items {
		for _, version := range group.Versions {
			for _, r := range version.Resources {
				r.Subresources = slices.DeleteFunc(r.Subresources, func(s struct{ Subresource string }) bool { return s.Subresource != "status" })
				if len(r.Subresources) == 0 {
					r.Subresources = nil
				}
				slices.Sort(r.Verbs)
				out[group.Metadata.Name+"/"+version.Version+"/"+r.Resource] = r
			}
		}
	}
	return out
}

func TestTheModelIsDiscoveredAsTheRealServerIs(t *testing.T) {
	p := newPair(t)
	p.begin()
	for _, path := range []string{"/api", "/apis"} {
		want, got := p.real.discovered(t, path), p.model.discovered(t, path)
		require.NotEmpty(t, got)
		for name, is := range got {
			assert.Equal(t, want[name], is, name)
		}
	}
}
