package fault_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"janus.io/janus/internal/fault"
)

var (
	configMaps = schema.GroupResource{Resource: "configmaps"}
	namespaces = schema.GroupResource{Resource: "namespaces"}
	widget     = schema.GroupKind{Group: "example.com", Kind: "Widget"}
)

// status is an answer of the API server with the given code.
func status(code int32, reason metav1.StatusReason, message string, causes ...metav1.StatusCause) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message,
		Details: &metav1.StatusDetails{Causes: causes},
	}}
}

// own is an error that has been classified before.
func own(class fault.Class, reason string) error {
	return fault.New(class, reason, "lock", "ConfigMap shop/a", "another client holds it")
}

// taken is the complaint about a field.
func taken(message string) metav1.StatusCause {
	return metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid, Field: "spec", Message: "Invalid value: " + message}
}

var classified = []struct {
	name   string
	err    error
	class  fault.Class
	reason string
}{
	{"an error of our own", own(fault.Conflict, fault.Drifted), fault.Conflict, fault.Drifted},
	{"an error of our own that names another cause", &fault.Error{Class: fault.Retryable, Reason: fault.LockHeld,
		Err: apierrors.NewNotFound(configMaps, "a")}, fault.Retryable, fault.LockHeld},

	{"no such kind", &meta.NoKindMatchError{GroupKind: widget}, fault.Terminal, fault.KindNotFound},
	{"no such resource", &meta.NoResourceMatchError{PartialResource: configMaps.WithVersion("v1")}, fault.Terminal, fault.KindNotFound},

	{"422 of a port that another has", status(422, metav1.StatusReasonInvalid, "", taken("31722: provided port is already allocated")), fault.Terminal, fault.AlreadyAllocated},
	{"422 of a port and an address that others have", status(422, metav1.StatusReasonInvalid, "", taken("31722: provided port is already allocated"),
		taken("failed to allocate IP 10.0.0.9: provided IP is already allocated")), fault.Terminal, fault.AlreadyAllocated},
	{"422 of a port that another has, and of content", status(422, metav1.StatusReasonInvalid, "", taken("31722: provided port is already allocated"),
		taken("may not be negative")), fault.Terminal, fault.Invalid},

	{"500 of a webhook that does not answer", status(500, metav1.StatusReasonInternalError, `Internal error occurred: failed calling webhook "a.example.com": failed to call webhook`),
		fault.Unknown, fault.WebhookUnavailable},

	{"409 of a stale resourceVersion", apierrors.NewConflict(configMaps, "a", errors.New("the object has been modified")), fault.Retryable, fault.StaleVersion},
	{"409 of a field manager", apierrors.NewApplyConflict([]metav1.StatusCause{{Type: metav1.CauseTypeFieldManagerConflict, Field: ".data.a"}}, "conflict"), fault.Conflict, fault.FieldConflict},
	{"409 of an existing object", apierrors.NewAlreadyExists(configMaps, "a"), fault.Conflict, fault.AlreadyExists},
	{"409 with another cause", status(409, metav1.StatusReasonConflict, "uid", metav1.StatusCause{Type: metav1.CauseTypeFieldValueInvalid}), fault.Retryable, fault.StaleVersion},
	{"409 without details", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 409, Reason: metav1.StatusReasonConflict}}, fault.Retryable, fault.StaleVersion},

	{"403", apierrors.NewForbidden(configMaps, "a", errors.New("no")), fault.Terminal, fault.AccessDenied},
	{"403 of a terminating namespace", status(403, metav1.StatusReasonForbidden, "being terminated", metav1.StatusCause{Type: corev1.NamespaceTerminatingCause, Field: "metadata.namespace"}), fault.Terminal, fault.Terminating},
	{"401", apierrors.NewUnauthorized("token expired"), fault.Retryable, fault.ServerUnavailable},
	{"404 of the object", apierrors.NewNotFound(configMaps, "a"), fault.Terminal, fault.NotFound},
	{"404 of the namespace", apierrors.NewNotFound(namespaces, "shop"), fault.Terminal, fault.NamespaceNotFound},
	{"404 without details", &apierrors.StatusError{ErrStatus: metav1.Status{Code: 404}}, fault.Terminal, fault.NotFound},

	{"400", apierrors.NewBadRequest("unknown field"), fault.Terminal, fault.Invalid},
	{"405", apierrors.NewMethodNotSupported(configMaps, "patch"), fault.Terminal, fault.Invalid},
	{"406", status(406, metav1.StatusReasonNotAcceptable, ""), fault.Terminal, fault.Invalid},
	{"415", status(415, metav1.StatusReasonUnsupportedMediaType, ""), fault.Terminal, fault.Invalid},
	{"422", apierrors.NewInvalid(widget, "a", field.ErrorList{field.Required(field.NewPath("spec"), "")}), fault.Terminal, fault.Invalid},
	{"413", apierrors.NewRequestEntityTooLargeError("limit is 3145728"), fault.Terminal, fault.TooLarge},
	{"429", apierrors.NewTooManyRequests("slow down", 3), fault.Retryable, fault.TooManyRequests},
	{"410", apierrors.NewResourceExpired("too old resource version"), fault.Retryable, fault.StaleVersion},

	{"500", apierrors.NewInternalError(errors.New("etcd is gone")), fault.Unknown, fault.ServerUnavailable},
	{"500 of a request too large for etcd", apierrors.NewInternalError(errors.New("etcdserver: request is too large")), fault.Terminal, fault.TooLarge},
	{"500 of a message too large for grpc", apierrors.NewInternalError(errors.New("rpc error: code = ResourceExhausted desc = trying to send message larger than max (2 vs. 1)")), fault.Terminal, fault.TooLarge},
	{"500 of an apply that does not fit its kind", apierrors.NewInternalError(errors.New("failed to create typed patch object (a/b; v1, Kind=Secret): .x: field not declared in schema")), fault.Terminal, fault.Invalid},
	{"500 of a resourceVersion on create", apierrors.NewInternalError(errors.New("resourceVersion should not be set on objects to be created")), fault.Terminal, fault.Invalid},
	{"502", status(502, "", "bad gateway"), fault.Unknown, fault.ServerUnavailable},
	{"503", apierrors.NewServiceUnavailable("starting"), fault.Unknown, fault.ServerUnavailable},
	{"503 with the text of a permanent 500", status(503, "", "request is too large"), fault.Unknown, fault.ServerUnavailable},
	{"504 of the server", apierrors.NewTimeoutError("timed out", 1), fault.Unknown, fault.ServerUnavailable},
	{"504 of a verb", apierrors.NewServerTimeout(configMaps, "create", 1), fault.Unknown, fault.ServerUnavailable},
	{"a code that means nothing", status(499, "", ""), fault.Unknown, fault.ServerUnavailable},
	{"a status without a code", status(0, "", ""), fault.Unknown, fault.ServerUnavailable},

	{"a deadline", context.DeadlineExceeded, fault.Unknown, fault.ServerUnavailable},
	{"a cancellation", context.Canceled, fault.Unknown, fault.ServerUnavailable},
	{"a reset connection", &url.Error{Op: "Post", URL: "https://x", Err: &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}}, fault.Unknown, fault.ServerUnavailable},
	{"a refused connection", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, fault.Unknown, fault.ServerUnavailable},
	{"an unknown host", &net.DNSError{Err: "no such host", Name: "x"}, fault.Unknown, fault.ServerUnavailable},
	{"an answer cut short", io.ErrUnexpectedEOF, fault.Unknown, fault.ServerUnavailable},
	{"500 of an object with a list of items", apierrors.NewInternalError(errors.New("*unstructured.Unstructured is not a list: no Items field in this object")), fault.Unknown, fault.Invalid},
	{"an answer that is no list", errors.New("*unstructured.Unstructured is not a list: no Items field in this object"), fault.Unknown, fault.Invalid},
	{"an answer that does not fit", &json.UnmarshalTypeError{Value: "string", Type: reflect.TypeFor[map[string]any]()}, fault.Unknown, fault.Invalid},
	{"an error nobody thought of", errors.New("request is too large"), fault.Unknown, fault.ServerUnavailable},
}

func TestClassify(t *testing.T) {
	wrappings := map[string]func(error) error{
		"bare":    func(err error) error { return err },
		"wrapped": func(err error) error { return fmt.Errorf("a: %w", fmt.Errorf("b: %w", err)) },
		"joined":  func(err error) error { return errors.Join(errors.New("first"), err) },
		"as ours": func(err error) error { return fault.Wrap(err, "get", "ConfigMap shop/a", false) },
		"secret":  func(err error) error { return fault.Wrap(err, "get", "Secret shop/a", true) },
		"twice":   func(err error) error { return fault.Wrap(fault.Wrap(err, "get", "a", true), "put", "b", false) },
	}
	for _, c := range classified {
		for how, wrap := range wrappings {
			t.Run(c.name+" "+how, func(t *testing.T) {
				err := wrap(c.err)
				class, reason := fault.Classify(err)
				if class != c.class || reason != c.reason {
					t.Errorf("%s %s, want %s %s", class, reason, c.class, c.reason)
				}
				if fault.ClassOf(err) != class || fault.ReasonOf(err) != reason || !fault.Is(err, reason) {
					t.Error("ClassOf, ReasonOf and Is do not agree with Classify")
				}
			})
		}
	}
}

func TestNothingIsNoError(t *testing.T) {
	if fault.Is(nil, fault.ReasonOf(nil)) {
		t.Error("no error has a reason")
	}
	if err := fault.Wrap(nil, "get", "a", true); err != nil {
		t.Errorf("wrapped nothing is %v", err)
	}
	if got := fault.Message(nil); got != "" {
		t.Errorf("its message is %q", got)
	}
}

func TestZeroClassIsUnknown(t *testing.T) {
	var class fault.Class
	if class != fault.Unknown || (&fault.Error{}).Class != fault.Unknown {
		t.Errorf("it is %s", class)
	}
}

func TestClassesHaveNames(t *testing.T) {
	for class, want := range map[fault.Class]string{
		fault.Unknown: "unknown", fault.Terminal: "terminal", fault.Conflict: "conflict", fault.Retryable: "retryable", fault.Class(77): "unknown",
	} {
		if got := class.String(); got != want {
			t.Errorf("%d is %q, want %q", class, got, want)
		}
	}
}

func TestRetryAfterIsWhatTheServerAsked(t *testing.T) {
	asked := apierrors.NewTooManyRequests("slow down", 7)
	for name, err := range map[string]error{
		"wrapped":       fault.Wrap(asked, "get", "a", false),
		"sensitive":     fault.Wrap(asked, "get", "a", true),
		"wrapped below": fmt.Errorf("x: %w", fault.Wrap(fmt.Errorf("y: %w", asked), "get", "a", false)),
	} {
		if got := fault.RetryAfter(err); got != 7*time.Second {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, err := range map[string]error{
		"nothing": nil, "a stranger": io.EOF, "not asked": fault.Wrap(apierrors.NewNotFound(configMaps, "a"), "get", "a", false),
	} {
		if got := fault.RetryAfter(err); got != 0 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestStatusIsTheServersAnswer(t *testing.T) {
	err := fault.Wrap(apierrors.NewNotFound(configMaps, "a"), "get", "a", false)
	if s, ok := fault.Status(err); !ok || s.Code != http.StatusNotFound {
		t.Errorf("got %v, %t", s, ok)
	}
	if _, ok := fault.Status(io.EOF); ok {
		t.Error("a stranger has a status")
	}
}
