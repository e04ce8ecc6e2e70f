package apisim

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kjson "sigs.k8s.io/json"
)

// What is read quickly is what the library reads, without anything wrong in it.
func FuzzWhatIsReadQuicklyIsRight(f *testing.F) {
	for _, text := range []string{
		`{}`, ` {"a" : [1, -2, 0, {"b":null}] , "c":{"d":"e\n\"\\\/","f":true,"g":false}, "h":[]} `, `{"a":"é","b":"\u00e9"}`,
		`{"a":1.0}`, `{"a":1e3}`, `{"a":01}`, `{"a":-0}`, `{"a":-}`, `{"a":9223372036854775808}`, `{"a":1,"a":2}`, `{"a":{"b":1,"b":2}}`,
		`{"a":1}x`, `{"a":1,}`, `{"a":[1,]}`, `{"a"}`, `{"a":tru}`, `{"a":truefalse}`, `{"a":"`, `{"a":"\`, "{\"a\":\"\n\"}", "{\"a\":\"\\n\n\"}", "{\"a\":\"\xff\"}", `[]`, `null`, ``,
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		quick, ok := parsed(data)
		if !ok {
			return
		}
		var careful content
		found, err := kjson.UnmarshalStrict(data, &careful)
		require.NoError(t, err)
		assert.Empty(t, found)
		assert.Equal(t, careful, quick)
	})
}

func TestUsualObjectsAreReadQuickly(t *testing.T) {
	for _, text := range []string{`{"kind":"ConfigMap","metadata":{"name":"a","generation":3},"data":{"a":"{\"b\":\"c\"}"}}` + "\n", `{"a":[{"b":true},null]}`} {
		_, ok := parsed([]byte(text))
		assert.True(t, ok, text)
	}
}
