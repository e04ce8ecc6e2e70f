package content

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noise cannot be compressed.
func noise(n int) []byte {
	out := make([]byte, n)
	for i := range out {
		out[i] = byte(rand.IntN(256)) //nolint:gosec // It hides nothing.
	}
	return out
}

func TestContentsAreFoundWhereTheyWereLaid(t *testing.T) {
	var contents []Content
	for i := range 40 {
		contents = append(contents, Content{Key: fmt.Sprint(i), Data: noise(90_000), Confidential: i%4 == 0})
	}
	stored, objects, err := Pack(contents)
	require.NoError(t, err)
	assert.Len(t, objects, 1+3, "10 Secrets fit into one object, 30 ConfigMaps into three")
	for i, at := range stored {
		object := objects[at.Object]
		assert.Equal(t, contents[i].Confidential, object.Secret)
		assert.Equal(t, Digest(object.Data[at.Key]), at.Digest)
		plain, err := Unpack(object.Data[at.Key])
		require.NoError(t, err)
		assert.True(t, bytes.Equal(contents[i].Data, plain))
	}
	for _, object := range objects {
		size := 0
		for key, data := range object.Data {
			size += len(key) + len(data)
		}
		assert.LessOrEqual(t, size, 1<<20)
	}
}

func TestTheDigestOfAStoredSecretTellsNothing(t *testing.T) {
	plain, hidden := Content{Key: "a", Data: []byte("{}")}, Content{Key: "a", Data: []byte("{}"), Confidential: true}
	for want, c := range map[bool]Content{true: plain, false: hidden} {
		one, _, err := Pack([]Content{c})
		require.NoError(t, err)
		other, _, err := Pack([]Content{c})
		require.NoError(t, err)
		assert.Equal(t, want, one[0].Digest == other[0].Digest)
	}
}

func TestAContentThatNoObjectHoldsIsRefused(t *testing.T) {
	for says, data := range map[string][]byte{
		"bytes when it is compressed, and may take 1000000: change that object outside of a Transaction": noise(1_100_000),
		"the content of crd takes 3145729 bytes, and may take 3145728: change that object":               make([]byte, MaxBytes+1),
	} {
		_, _, err := Pack([]Content{{Key: "crd", Data: data}})
		var large *TooLargeError
		require.ErrorAs(t, err, &large)
		assert.Equal(t, "crd", large.Key)
		assert.ErrorContains(t, err, says)
	}
}
