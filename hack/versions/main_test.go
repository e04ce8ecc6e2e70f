package main

import (
	"errors"
	"testing"
)

const (
	above  = "spec:\n  names:\n    shortNames:\n    - txn\n  versions:\n"
	first  = "  - additionalPrinterColumns:\n    - name: Phase\n    name: v1alpha1\n    schema:\n      a: b\n    served: true\n    storage: true\n    subresources:\n      status: {}\n"
	second = "  - additionalPrinterColumns:\n    - name: Phase\n    name: v1beta1\n    schema:\n      a: b\n    served: true\n    storage: false\n    subresources:\n      status: {}\n"
)

func TestTheVersionIsServedUnderASecondName(t *testing.T) {
	got, err := serve(above + first)
	if want := above + first + second; err != nil || got != want {
		t.Errorf("got %q and %v, want %q", got, err, want)
	}
}

func TestADefinitionThatHasNotOneVersionIsRefused(t *testing.T) {
	for name, text := range map[string]string{
		"with both already":   above + first + second,
		"without a version":   "spec: {}\n",
		"with another name":   above + second,
		"with a status below": above + first + "status: {}\n",
	} {
		if got, err := serve(text); !errors.Is(err, errNotOne) {
			t.Errorf("%s: got %q and %v", name, got, err)
		}
	}
}
