package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestWhatAnItemSaysWasNotStoredIsNotAskedFor(t *testing.T) {
	asked := tree{"data": tree{"a": "1", "ab": "2"}, "spec": tree{"parts": []any{tree{"name": "x", "count": 1}}, "size": 3}}
	for _, c := range []struct {
		name, warning string
		want          tree
	}{
		{"no warning", "", asked},
		{"a warning about something else", "its Pods go with it; .data.a, wanted", asked},
		{"a field", `the API server did not store what the content says: .data.a, wanted "1", stored "p"`, tree{"data": tree{"ab": "2"}, "spec": asked["spec"]}},
		{"a field whose value is not shown", `Secret shop/x: the API server would not store what the content says: .data.ab`, tree{"data": tree{"a": "1"}, "spec": asked["spec"]}},
		{"a part of a list", `the API server did not store what the content says: .spec.parts[name="x"].count, wanted 1, not stored`, tree{"data": asked["data"], "spec": tree{"size": 3}}},
	} {
		assert.Equal(t, map[string]any(c.want), stored(asked, &item{warnings: []string{c.warning}}), c.name)
	}
}

func TestLabelsAndAnnotationsThatAreNamedAreExcused(t *testing.T) {
	told := item{state: "RolledBack", reason: "Overwritten", message: `rolled back; the API server did not store all of it as it was: .metadata.annotations.stamp, not wanted, stored "policy"; .metadata.labels.example.com/x; and more`}
	assert.Equal(t, []string{".metadata.annotations.stamp", ".metadata.labels.example.com/x"}, told.restored())
	told.state = "Unresolved"
	assert.Empty(t, told.restored())
}
