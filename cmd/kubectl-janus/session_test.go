package main

import (
	"testing"

	"github.com/stretchr/testify/assert"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "janus.io/janus/api/v1alpha1"
)

// Times are kept by the second, so that two Transactions may have been created at the same.
func TestOfTheSameSecondTheOneThatWasWrittenLastIsLater(t *testing.T) {
	of := func(version string) *api.Transaction {
		return &api.Transaction{ObjectMeta: metav1.ObjectMeta{ResourceVersion: version}}
	}
	assert.Negative(t, byVersion(of("99"), of("100")))
	assert.Positive(t, byVersion(of("100"), of("99")))
	assert.Zero(t, byVersion(of("x"), of("100")), "what cannot be compared is not ordered by it")
}
