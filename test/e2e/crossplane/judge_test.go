package crossplane

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"k8s.io/apimachinery/pkg/types"
)

// The judge of fault plans sees what it is there for.
func TestTheJudgeSeesWhatIsOther(t *testing.T) {
	const (
		provider = "providers/acme-bucket kept a:v1 Automatic paused= acme-bucket-1 Healthy+Installed labels= managers="
		sick     = "providers/acme-bucket kept a:v1 Automatic paused= acme-bucket-1 Installed labels= managers="
		revision = "providerrevisions/acme-bucket-1 kept Active a:v1 owners=Provider/acme-bucket! managers= RevisionHealthy+RuntimeHealthy"
		stopped  = "providerrevisions/acme-bucket-1 kept Inactive a:v1 owners=Provider/acme-bucket! managers="
	)
	assert.True(t, seen{lines: []string{provider, revision}}.works("acme-bucket"))
	assert.False(t, seen{lines: []string{sick, revision}}.works("acme-bucket"), "a provider that is not healthy works")
	assert.False(t, seen{lines: []string{provider, stopped}}.works("acme-bucket"), "a provider without an active revision works")
	assert.False(t, seen{lines: []string{provider, revision}}.works("acme"), "another provider of a longer name works")
	assert.False(t, seen{}.works("acme-bucket"))

	before := seen{uids: map[string]types.UID{"buckets/mine": "1", "queues/theirs": "2", "providers/acme-bucket": "3"}}
	assert.Empty(t, before.lost(before))
	assert.Empty(t, seen{uids: map[string]types.UID{"buckets/mine": "1", "queues/theirs": "2"}}.lost(before), "a provider is no custom resource")
	assert.Equal(t, []string{"queues/theirs"}, seen{uids: map[string]types.UID{"buckets/mine": "1"}}.lost(before))
	assert.Equal(t, []string{"buckets/mine"}, seen{uids: map[string]types.UID{"buckets/mine": "9", "queues/theirs": "2"}}.lost(before), "another object of the name")

	definition := func(state, owners string) seen {
		return seen{lines: []string{"customresourcedefinitions/buckets.acme.io " + state + " owners=" + owners + " schema=1", "secrets/any new"}}
	}
	was := definition("kept", "ProviderRevision/acme-bucket-1!").lasting()
	assert.Equal(t, was, definition("new", "ProviderRevision/acme-bucket-1!,ProviderRevision/acme-bucket-2").lasting())
	assert.NotEqual(t, was, definition("kept", "ProviderRevision/acme-bucket-1,ProviderRevision/acme-bucket-2!").lasting(), "another revision controls it")
	assert.NotEqual(t, was, definition("kept", "ProviderRevision/acme-bucket-1").lasting(), "none controls it")
	assert.NotEqual(t, was, seen{}.lasting(), "it is gone")
	assert.Equal(t, "\n  - a\n  + c", difference([]string{"a", "b"}, []string{"b", "c"}))
}
