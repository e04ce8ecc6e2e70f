package plan

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/internal/errclass"
)

// The names and messages of a thousand items do not fit into a message.
func TestManyProblemsAreBounded(t *testing.T) {
	denied := errclass.New(errclass.Terminal, errclass.AccessDenied, "patch", "ConfigMap shop/c", "ServiceAccount shop/deployer may not")
	items := make([]api.Item, 1000)
	var problems []Problem
	for i := range items {
		items[i].Name = fmt.Sprintf("item-%d", i)
		problems = append(problems, Problem{Item: i, Err: errors.New(strings.Repeat("long ", 1000))}, Problem{Item: i, Err: denied})
	}
	reportProblems(items, problems)
	total := 0
	for _, item := range items {
		total += len(item.Message)
	}
	assert.LessOrEqual(t, total, reportBytes)
	cause := sumUp(items, Preflight{Problems: problems})
	assert.LessOrEqual(t, len(cause.Message), errclass.MaxMessage)
	assert.Contains(t, cause.Message, "2000 problems with 1000 of 1000 changes (item-0, item-1, ")
	assert.Contains(t, cause.Message, "item-19 and 980 more): ")
	assert.Equal(t, errclass.AccessDenied, cause.Reason, "what may heal counts only beside what will not")
}
