package target

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestAbsenceIsAskedTwiceAndPresenceOnce(t *testing.T) {
	missing := apierrors.NewNotFound(schema.GroupResource{Resource: "configmaps"}, "app")
	failed := apierrors.NewInternalError(assert.AnError)
	for name, c := range map[string]struct {
		answers []error
		asked   int
		want    error
	}{
		"it exists":                       {[]error{nil}, 1, nil},
		"it is denied once":               {[]error{missing, nil}, 2, nil},
		"it does not exist":               {[]error{missing, missing}, 2, missing},
		"another failure is passed on":    {[]error{failed}, 1, failed},
		"a failure of the second look is": {[]error{missing, failed}, 2, failed},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			found, err := Confirmed(func() (string, error) {
				asked++
				if answer := c.answers[asked-1]; answer != nil {
					return "", answer
				}
				return "app", nil
			})
			assert.Equal(t, c.asked, asked)
			if c.want == nil {
				require.NoError(t, err)
				assert.Equal(t, "app", found)
				return
			}
			assert.Equal(t, c.want, err)
		})
	}
}
