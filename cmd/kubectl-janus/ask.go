package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"golang.org/x/term"

	api "janus.io/janus/api/v1alpha1"
)

// asking is how a plan is shown before it is made.
type asking struct {
	out       io.Writer     // of the plan
	limit     time.Duration // for janusd to make it; zero for the default
	question  string
	otherwise string // what is not done
	from      string // the flags that name the manifests, where there are some
	defaults  bool   // whether to show what the API server adds
}

// planTimeout is how long a plan may take where no flag says it.
const planTimeout = 2 * time.Minute

// wanted shows the plan of a draft and asks whether it is to be made. It reports that there is nothing
// to make; the error says what is not done.
func (s *session) wanted(ctx context.Context, d draft, a asking) (nothing bool, err error) {
	if a.limit == 0 {
		a.limit = planTimeout
	}
	tried := d
	tried.Unstructured = d.DeepCopy()
	if tried.GetGenerateName() != "" {
		tried.SetGenerateName(short(tried.GetGenerateName()) + "plan-")
	}
	t, err := s.tried(ctx, tried, false, a.limit)
	if err != nil {
		return false, err
	}
	if t.Status.Phase == api.PhasePlanned && !someEffect(t) {
		return true, nil
	}
	s.printPlanOf(ctx, a.out, d, t, a.defaults)
	if t.Status.Phase != api.PhasePlanned {
		_, _ = fmt.Fprintln(s.ErrOut)
		printMissing(s.ErrOut, t, a.from)
		if !onlyRights(t) {
			_, reason, message := reasonOf(t)
			s.say("%s: %s", reason, message)
		}
		return false, &exitError{code: exitFailed}
	}
	return false, s.agreed(ctx, a.question, a.otherwise)
}

// someEffect reports whether anything would be made, or waited for.
func someEffect(t *api.Transaction) bool {
	return slices.ContainsFunc(t.Status.Items, func(i api.Item) bool {
		return i.Type == api.Await || i.Plan == nil || i.Plan.Effect != api.EffectNone
	})
}

// questions is where a person sees a question: standard error, or standard output if that is
// redirected; nil if both are.
func (s *session) questions() io.Writer {
	for _, out := range []io.Writer{s.ErrOut, s.Out} {
		if file, ok := out.(*os.File); ok && term.IsTerminal(int(file.Fd())) {
			return out
		}
	}
	return nil
}

// agreed asks whether to go on. Otherwise the error says what is not done.
func (s *session) agreed(ctx context.Context, question, otherwise string) error {
	out := s.questions()
	if out == nil {
		out = s.ErrOut
	}
	write(out, "%s [y/N]\n", question)
	type reply struct {
		text string
		err  error
	}
	heard := make(chan reply, 1)
	go func() {
		text, err := bufio.NewReader(s.In).ReadString('\n')
		heard <- reply{text, err}
	}()
	select {
	case <-ctx.Done():
		return fmt.Errorf("interrupted, and %s", otherwise)
	case r := <-heard:
		switch answer := strings.ToLower(strings.TrimSpace(r.text)); {
		case answer == "y" || answer == "yes":
			return nil
		case r.err != nil && answer == "":
			return fmt.Errorf("nobody answered, and %s: set --yes where nobody can be asked", otherwise)
		}
		return errors.New(otherwise)
	}
}
