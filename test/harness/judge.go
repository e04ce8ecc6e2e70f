package harness

import (
	"errors"
	"fmt"
	"strings"

	"janus.io/janus/test/testcluster"
)

// JudgeRights finds requests of Janus, in all tests of a package, that were made as
// another user than janusd, and those that janusd lacked the right for: the tests would
// say little about the rights that are shipped, or these are too few. What a ServiceAccount
// that janusd acts as may not do is its own affair.
func JudgeRights(events []testcluster.AuditEvent) error {
	var errs []error
	for _, e := range events {
		if name, _, _ := strings.Cut(e.UserAgent, "/"); name != program {
			continue
		}
		what := fmt.Sprintf("%s %s", e.Verb, e.RequestURI)
		switch {
		case e.User != Identity:
			errs = append(errs, fmt.Errorf("Janus was %q, and not %s: %s", e.User, Identity, what))
		case e.ImpersonatedUser == "" && e.Denied:
			errs = append(errs, fmt.Errorf("janusd lacks the right to %s", what))
		}
	}
	// What is wrong with one request is wrong with thousands.
	const told = 10
	if more := len(errs) - told; more > 0 {
		errs = append(errs[:told], fmt.Errorf("and %d more", more))
	}
	return errors.Join(errs...)
}
