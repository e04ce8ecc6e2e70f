package apisim

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// request is one request for a resource.
type request struct {
	*Server
	verb            string
	kind            *kind
	namespace, name string
	subresource     string
	query           url.Values
	user            string
	// manager is the field manager: the one named, or the first part of the user agent.
	manager     string
	contentType string
	body        []byte
	dryRun      bool
	// strict says that unknown fields are an error, and lenient that they are not even
	// looked for.
	strict, lenient bool
	// applied says that what is to be stored comes of an apply.
	applied bool
	// fresh is freshOf, what the field manager has seen, with its parts told apart.
	fresh   *typed.TypedValue
	freshOf content
}

// maxBody is the size of a request that a real server refuses.
const maxBody = 3 << 20

func bodyOf(req *http.Request) ([]byte, error) {
	if req.Body == nil {
		return nil, nil
	}
	body, err := io.ReadAll(req.Body)
	_ = req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read the body of a request: %w", err)
	}
	return body, nil
}

func (s *Server) answer(req *http.Request, body []byte) *http.Response {
	if answer := s.special(req, body); answer != nil {
		return answer
	}
	r, err := s.parse(req, body)
	if err != nil {
		return failed(req, err)
	}
	if err := r.authorize(); err != nil {
		return failed(req, err)
	}
	switch r.verb {
	case "get":
		return r.get(req)
	case "list":
		return r.list(req)
	case "watch":
		return r.watch(req)
	case "deletecollection":
		return r.deleteCollection(req)
	}
	if err := r.readOptions(req); err != nil {
		return failed(req, err)
	}
	code, out, err := r.write()
	switch {
	case err != nil:
		return failed(req, err)
	case out.status != nil:
		return answerOf(req, code, out.status)
	default:
		return r.object(req, code, out.object)
	}
}

// outcome is what a write answers: an object or a Status.
type outcome struct {
	object *stored
	status *metav1.Status
}

// write does what changes a single object.
func (r *request) write() (int, outcome, error) {
	if len(r.body) > maxBody {
		return 0, outcome{}, apierrors.NewRequestEntityTooLargeError("limit is 3145728")
	}
	switch r.verb {
	case "create":
		out, err := r.create()
		return http.StatusCreated, outcome{object: out}, err
	case "update":
		out, created, err := r.update()
		return codeOf(created), outcome{object: out}, err
	case "patch":
		out, created, err := r.patch()
		return codeOf(created), outcome{object: out}, err
	default:
		return r.delete()
	}
}

func codeOf(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

// parse reads what is asked for out of the path.
func (s *Server) parse(req *http.Request, body []byte) (*request, error) {
	parts := strings.Split(strings.Trim(req.URL.Path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return nil, errNoPage
	}
	r := &request{Server: s, body: body, user: userOf(req), contentType: mediaType(req.Header.Get("Content-Type"))}
	if req.URL.RawQuery != "" {
		r.query = req.URL.Query()
	}
	if parts[0] == "namespaces" && len(parts) >= 3 && (gv.Group != "" || len(parts) > 3 || parts[2] != "status") {
		r.namespace, parts = parts[1], parts[2:]
	}
	k, ok := s.kinds[gv.WithResource(parts[0])]
	if !ok || len(parts) > 3 {
		return nil, errNoPage
	}
	r.kind = k
	if len(parts) > 1 {
		r.name = parts[1]
	}
	if len(parts) > 2 {
		r.subresource = parts[2]

		if r.subresource != "status" || !k.status {
			return nil, errNoPage
		}
	}
	if k.namespaced != (r.namespace != "") && (r.namespace != "" || r.name != "") {
		return nil, errNoPage
	}
	r.verb = verbOf(req.Method, r.name, r.query)
	if r.verb == "" || r.verb == "deletecollection" && !k.wholeCollection() {
		return nil, apierrors.NewMethodNotSupported(k.groupResource(), strings.ToLower(req.Method))
	}
	return r, nil
}

func verbOf(method, name string, query url.Values) string {
	switch {
	case method == http.MethodGet && name != "":
		return "get"
	case method == http.MethodGet && isTrue(query.Get("watch")):
		return "watch"
	case method == http.MethodGet:
		return "list"
	case method == http.MethodPost && name == "":
		return "create"
	case method == http.MethodPut && name != "":
		return "update"
	case method == http.MethodPatch && name != "":
		return "patch"
	case method == http.MethodDelete && name != "":
		return "delete"
	case method == http.MethodDelete:
		return "deletecollection"
	default:
		return ""
	}
}

func isTrue(s string) bool { return s == "true" || s == "1" }

func mediaType(header string) string {
	kind, _, _ := strings.Cut(header, ";")
	return strings.TrimSpace(kind)
}

func userOf(req *http.Request) string {
	if user := req.Header.Get("Impersonate-User"); user != "" {
		return user
	}
	return administrator
}

// agentOf is the manager of a write that names none.
func agentOf(req *http.Request) string {
	agent, _, _ := strings.Cut(req.UserAgent(), "/")
	if len(agent) > 128 {
		agent = agent[:128]
	}
	return agent
}
