package harness

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestThePagesAreReadAsTheyAreMeant(t *testing.T) {
	steps := stepsOf("text\n```console\n$ kubectl get txn\nNAME   AGE\na      5s\n$ true\n```\n```sh\n$ not this\n```\n")
	assert.Equal(t, []step{{"kubectl get txn", "NAME   AGE\na      5s\n"}, {"true", ""}}, steps)
	assert.Regexp(t, steps[0].pattern(), plainText("NAME   AGE\na      1m12s  \n"))
	assert.NotRegexp(t, steps[0].pattern(), plainText("NAME   AGE\nb      5s\n"))
	assert.Regexp(t, step{prints: "[…]is (held)[…]"}.pattern(), "the lock is (held) by b")
	assert.NotRegexp(t, steps[1].pattern(), "something")
}
