package apisim

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func (r *request) access() Access {
	return Access{
		User: r.user, Verb: r.verb, Group: r.kind.gvk.Group, Version: r.kind.gvk.Version,
		Resource: r.kind.resource, Subresource: r.subresource, Namespace: r.namespace, Name: r.name,
	}
}

// authorize refuses a request that its sender may not make.
func (r *request) authorize() error {
	if r.options.Allowed == nil {
		return nil
	}
	return r.allows(r.access())
}

func (s *Server) allows(a Access) error {
	if s.options.Allowed == nil || s.options.Allowed(a) {
		return nil
	}
	return forbidden(a)
}

// forbidden is what a server with RBAC says.
func forbidden(a Access) error {
	resource := a.Resource
	if a.Subresource != "" {
		resource += "/" + a.Subresource
	}
	scope := "at the cluster scope"
	if a.Namespace != "" {
		scope = fmt.Sprintf("in the namespace %q", a.Namespace)
	}
	return apierrors.NewForbidden(schema.GroupResource{Group: a.Group, Resource: a.Resource}, a.Name,
		fmt.Errorf("User %q cannot %s resource %q in API group %q %s", a.User, a.Verb, resource, a.Group, scope)) //nolint:staticcheck // the text is the server's
}

// admit asks the test whether a write is to be refused.
func (r *request) admit(operation string, obj, old content) error {
	if r.options.Admit == nil {
		return nil
	}
	a := Admission{Access: r.access(), Operation: operation, DryRun: r.dryRun}
	if obj != nil {
		a.Object = wrap(obj)
	}
	if old != nil {
		a.Old = wrap(old)
	}
	err := r.options.Admit(a)
	var status apierrors.APIStatus
	if err == nil || errors.As(err, &status) {
		return err
	}
	return apierrors.NewForbidden(r.kind.groupResource(), r.name, err)
}

// review answers what a user may do, and who he is.
func (s *Server) review(req *http.Request, body []byte) *http.Response {
	switch strings.TrimPrefix(req.URL.Path, "/apis/") {
	case "authorization.k8s.io/v1/selfsubjectaccessreviews":
		review := authorizationv1.SelfSubjectAccessReview{TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectAccessReview", APIVersion: "authorization.k8s.io/v1"}}
		if err := decodeInto(body, &review); err != nil {
			return failed(req, apierrors.NewBadRequest(err.Error()))
		}
		review.Status.Allowed = true
		if a := review.Spec.ResourceAttributes; a != nil && s.options.Allowed != nil {
			review.Status.Allowed = s.options.Allowed(Access{
				User: userOf(req), Verb: a.Verb, Group: a.Group, Version: a.Version,
				Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name,
			})
		}
		return answerOf(req, http.StatusCreated, review)
	case "authentication.k8s.io/v1/selfsubjectreviews":
		review := authenticationv1.SelfSubjectReview{TypeMeta: metav1.TypeMeta{Kind: "SelfSubjectReview", APIVersion: "authentication.k8s.io/v1"}}
		review.Status.UserInfo.Username = userOf(req)
		return answerOf(req, http.StatusCreated, review)
	default:
		return nil
	}
}
