package apisim

import (
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// special answers what is not about objects; nil if it is.
func (s *Server) special(req *http.Request, body []byte) *http.Response {
	path := strings.TrimSuffix(req.URL.Path, "/")
	switch {
	case req.Method == http.MethodGet && path == "/api":
		return s.discovery(req, true)
	case req.Method == http.MethodGet && path == "/apis":
		return s.discovery(req, false)
	case req.Method == http.MethodGet && path == "/openapi/v3":
		return s.index(req)
	case req.Method == http.MethodGet && strings.HasPrefix(path, "/openapi/v3/"):
		return s.published(req, strings.TrimPrefix(path, "/openapi/v3/"))
	case req.Method == http.MethodGet && path == "/version":
		return answerOf(req, http.StatusOK, version.Info{Major: "1", Minor: "36", GitVersion: "v1.36.3"})
	case req.Method == http.MethodGet && path == "/readyz":
		return answerOf(req, http.StatusOK, "ok")
	case req.Method == http.MethodPost:
		return s.review(req, body)
	default:
		return nil
	}
}

// aggregated is the content type of a discovery document of all groups.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// discovery answers with one document for all groups, or for the one without a name.
func (s *Server) discovery(req *http.Request, core bool) *http.Response {
	if !strings.Contains(req.Header.Get("Accept"), "apidiscovery.k8s.io") {
		return failed(req, unmodelled("discovery that is not aggregated"))
	}
	which := 0
	if core {
		which = 1
	}
	if s.discovered[which] == nil {
		data, err := json.Marshal(s.groups(core))
		if err != nil {
			return failed(req, err)
		}
		s.discovered[which] = data
	}
	answer := rawAnswer(req, http.StatusOK, s.discovered[which])
	answer.Header["Content-Type"] = []string{aggregated}
	return answer
}

func (s *Server) groups(core bool) apidiscovery.APIGroupDiscoveryList {
	out := apidiscovery.APIGroupDiscoveryList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupDiscoveryList", APIVersion: "apidiscovery.k8s.io/v2"}}
	resources := map[schema.GroupVersion][]apidiscovery.APIResourceDiscovery{}
	for _, k := range s.kinds {
		if (k.gvk.Group == "") == core {
			resources[k.groupVersion()] = append(resources[k.groupVersion()], k.discovery())
		}
	}
	groups := map[string][]apidiscovery.APIVersionDiscovery{}
	for gv, list := range resources {
		slices.SortFunc(list, func(a, b apidiscovery.APIResourceDiscovery) int { return cmp.Compare(a.Resource, b.Resource) })
		groups[gv.Group] = append(groups[gv.Group], apidiscovery.APIVersionDiscovery{
			Version: gv.Version, Freshness: apidiscovery.DiscoveryFreshnessCurrent, Resources: list,
		})
	}
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		versions := groups[group]
		slices.SortFunc(versions, func(a, b apidiscovery.APIVersionDiscovery) int {
			return version.CompareKubeAwareVersionStrings(b.Version, a.Version)
		})
		out.Items = append(out.Items, apidiscovery.APIGroupDiscovery{ObjectMeta: metav1.ObjectMeta{Name: group}, Versions: versions})
	}
	return out
}

var allVerbs = []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}

func (k *kind) verbs() []string {
	if k.wholeCollection() {
		return allVerbs
	}
	return slices.DeleteFunc(slices.Clone(allVerbs), func(v string) bool { return v == "deletecollection" })
}

// wholeCollection says that all objects of the kind can be deleted by one request.
func (k *kind) wholeCollection() bool { return k.gvk.Group != "" || k.gvk.Kind != "Namespace" }

func (k *kind) discovery() apidiscovery.APIResourceDiscovery {
	scope := apidiscovery.ScopeCluster
	if k.namespaced {
		scope = apidiscovery.ScopeNamespace
	}
	gvk := &metav1.GroupVersionKind{Group: k.gvk.Group, Version: k.gvk.Version, Kind: k.gvk.Kind}
	if _, custom := k.shape.(*customShape); !custom {
		// That of a built-in kind goes without saying.
		gvk.Group, gvk.Version = "", ""
	}
	d := apidiscovery.APIResourceDiscovery{
		Resource: k.resource, SingularResource: k.singular, ResponseKind: gvk, Scope: scope,
		ShortNames: k.shortNames, Categories: k.categories, Verbs: k.verbs(),
	}
	if k.status {
		d.Subresources = []apidiscovery.APISubresourceDiscovery{{Subresource: "status", ResponseKind: gvk, Verbs: []string{"get", "patch", "update"}}}
	}
	return d
}

// index names the OpenAPI documents, each with the hash of its content.
func (s *Server) index(req *http.Request) *http.Response {
	type entry struct {
		URL string `json:"serverRelativeURL"`
	}
	paths := map[string]entry{}
	for gv, d := range s.documents {
		paths[pathOf(gv)] = entry{"/openapi/v3/" + pathOf(gv) + "?hash=" + d.hash}
	}
	return answerOf(req, http.StatusOK, map[string]any{"paths": paths})
}

// published answers with the OpenAPI document of a group and version.
func (s *Server) published(req *http.Request, path string) *http.Response {
	for gv, d := range s.documents {
		if pathOf(gv) == path {
			return rawAnswer(req, http.StatusOK, d.data)
		}
	}
	return failed(req, errNoPage)
}
