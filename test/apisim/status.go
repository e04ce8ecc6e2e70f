package apisim

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// statusOf returns the Status by which an API server tells of an error.
func statusOf(err error) metav1.Status {
	var known apierrors.APIStatus
	if !errors.As(err, &known) {
		return metav1.Status{
			TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
			Status:   metav1.StatusFailure, Code: http.StatusInternalServerError, Message: err.Error(),
		}
	}
	status := known.Status()
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code == 0 {
		status.Code = http.StatusInternalServerError
		if status.Status == metav1.StatusSuccess {
			status.Code = http.StatusOK
		}
	}
	return status
}

// unmodelled refuses what the model does not know.
func unmodelled(what string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotImplemented, Message: "apisim does not model " + what,
	}}
}

// errNoPage is the answer to a path that is not served. It is text and no Status.
var errNoPage = errors.New("404 page not found")

func failed(req *http.Request, err error) *http.Response {
	if errors.Is(err, errNoPage) {
		answer := rawAnswer(req, http.StatusNotFound, []byte(err.Error()+"\n"))
		answer.Header["Content-Type"] = []string{"text/plain; charset=utf-8"}
		return answer
	}
	status := statusOf(err)
	answer := answerOf(req, int(status.Code), status)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		answer.Header.Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	return answer
}

// answerOf encodes the body of an answer.
func answerOf(req *http.Request, code int, body any) *http.Response {
	data, err := json.Marshal(body)
	if err != nil {
		return failed(req, err)
	}
	return rawAnswer(req, code, data)
}

// jsonType is the content type of every answer but discovery. It is shared, since
// nobody writes to a value of a header.
var jsonType = []string{"application/json"}

func rawAnswer(req *http.Request, code int, data []byte) *http.Response {
	return &http.Response{
		Status: strconv.Itoa(code) + " " + http.StatusText(code), StatusCode: code,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": jsonType}, ContentLength: int64(len(data)),
		Body: io.NopCloser(bytes.NewReader(data)), Request: req,
	}
}
