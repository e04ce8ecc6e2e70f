package oracle

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestCleanStoriesAreClean(t *testing.T) {
	for name, w := range map[string]*world{"commit": commit(nil), "rollback": rollBack(nil), "rollback of all": rollBackAll(nil)} {
		assert.Empty(t, w.breaches(), name)
	}
}

func BenchmarkJudge(b *testing.B) {
	for name, w := range map[string]*world{"commit": commit(nil), "rollback": rollBackAll(nil)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Judge(w.evidence)
			}
		})
	}
}
