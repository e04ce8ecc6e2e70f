package errclass

import (
	"context"
	"errors"
	"net"
	"net/http"
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unanswered returns the object that a request was about which had no answer in time, of the API
// server or of a webhook that this has asked; empty for every other error. One that cannot be reached at
// all, or refuses at once, is another matter: that it comes back changes the answer.
func Unanswered(err error) string {
	var own *Error
	if errors.As(err, &own) && own.TimedOut {
		return own.Target
	}
	return ""
}

func timedOut(err error) bool {
	var own *Error
	if errors.As(err, &own) {
		return own.TimedOut
	}
	if status, ok := Status(err); ok {
		return statusTimedOut(status)
	}
	var network net.Error
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &network) && network.Timeout()
}

// webhookTimedOut is how the API server says that a webhook has not answered in time. The address before
// it has the word timeout, too.
var webhookTimedOut = regexp.MustCompile(`": .*(context deadline exceeded|Client\.Timeout exceeded|handshake timeout|i/o timeout)`)

// statusTimedOut tells the time-outs among the answers of the API server: 504 is that of a request of its
// own, and a webhook is known by its words alone.
func statusTimedOut(s metav1.Status) bool {
	return s.Code == http.StatusGatewayTimeout || strings.Contains(s.Message, webhookDown) && webhookTimedOut.MatchString(s.Message)
}
