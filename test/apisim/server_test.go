package apisim_test

import (
	"net/http"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"

	"janus.io/janus/test/apisim"
)

// Servers share what is compiled and nothing else: with the race detector this says so.
func TestServersAreIndependent(t *testing.T) {
	crds := append(definitions(t), ownDefinition(t, "sprockets.yaml"))
	var group sync.WaitGroup
	answers := make([]string, 4)
	for i := range answers {
		group.Go(func() {
			s := newSide(t, "a server", configFor(apisim.New(apisim.Options{CRDs: crds, Namespaces: []string{namespace}}), ""))
			s.forget()
			for seed := range uint64(8) {
				q := newSequence(seed, namespace)
				for range 40 {
					answers[i] += shown(s.send(t, q.next()))
				}
			}
		})
	}
	group.Wait()
	for _, other := range answers[1:] {
		assert.Equal(t, answers[0], other)
	}
}

// The same requests give the same uids and names, and another seed gives others.
func TestUIDsFollowTheSeed(t *testing.T) {
	uid := func(seed uint64) string {
		s := newSide(t, "a server", configFor(apisim.New(apisim.Options{Seed: seed, Namespaces: []string{namespace}}), ""))
		s.forget()
		a := s.send(t, operation{method: http.MethodPost, path: "/api/v1/namespaces/" + namespace + "/configmaps", contentType: asJSON, agent: "tester", body: func(*side) any {
			return object{"apiVersion": "v1", "kind": "ConfigMap", "metadata": object{"generateName": "a-"}}
		}})
		m := metadataOf(a.raw.(object))
		return m["name"].(string) + m["uid"].(string)
	}
	first := uid(1)
	assert.Equal(t, first, uid(1))
	assert.NotEqual(t, first, uid(2))
}
