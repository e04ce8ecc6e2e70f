package settings

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWhatIsToldIsRead(t *testing.T) {
	for _, kinds := range [][]schema.GroupKind{
		nil,
		{{Kind: "Token"}},
		{{Kind: "Key", Group: "example.com"}, {Kind: "Token"}, {Kind: "Api2Key", Group: "a-b.example.com"}},
	} {
		told := Settings{SensitiveKinds: kinds, Locks: []string{"", LeaseOfNamespace}[len(kinds)%2]}
		read, err := Of(told.Data())
		require.NoError(t, err)
		assert.Equal(t, told, read)
	}
}

func TestWhatIsNotUnderstoodIsNoShorterList(t *testing.T) {
	for _, data := range []map[string]string{
		nil, {"other": "Key"}, {sensitiveKinds: "Key,"}, {sensitiveKinds: "keys"}, {sensitiveKinds: "Key/v1"}, {sensitiveKinds: "Key Token"}, {sensitiveKinds: " "},
	} {
		_, err := Of(data)
		require.Error(t, err, "%v", data)
	}
}
