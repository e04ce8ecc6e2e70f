package image

import (
	"cmp"

	"janus.io/janus/internal/registries"
)

// Reason is the kind of an Error: one of a registry, or one of these.
type Reason string

// The reasons that an image has, beside those of registries.
const (
	// InvalidPackage: it is no package that Crossplane would install.
	InvalidPackage Reason = "InvalidPackage"
	// TooLarge: it is larger than is read.
	TooLarge Reason = "TooLarge"
)

// Error is what is wrong with an image.
type Error struct {
	Image  string
	Reason Reason
	text   string
	cause  error
}

func (e *Error) Error() string { return "image " + e.Image + ": " + cmp.Or(e.text, string(e.Reason)) }

// Unwrap returns the error of the registry, if it is one.
func (e *Error) Unwrap() error { return e.cause }

// Temporary reports whether the registry may answer otherwise later.
func (e *Error) Temporary() bool {
	switch registries.Kind(e.Reason) {
	case registries.TooManyRequests, registries.Unavailable, registries.TooSlow, registries.Damaged:
		return true
	default:
		return false
	}
}

// Permanent reports whether the image will never be better. What has a digest does not change.
func (e *Error) Permanent() bool { return e.Reason == InvalidPackage || e.Reason == TooLarge }
