package main

import (
	"io"
	"os"
	"time"

	"golang.org/x/term"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// progress is the view of a Transaction that runs: on a terminal a table that is drawn
// again and again, anywhere else a line for each thing that happens.
func (s *session) progress() view {
	if width, height, ok := terminal(s.ErrOut); ok {
		s.screen = &live{out: s.ErrOut, colour: colourful(), now: time.Now, size: func() (int, int) {
			if w, h, ok := terminal(s.ErrOut); ok {
				width, height = w, h
			}
			return width, height
		}}
		return s.screen
	}
	s.told = map[string]bool{}
	return &lines{out: s.ErrOut, patience: patience, told: s.told}
}

// terminal reports whether out is a terminal on which lines can be drawn again.
func terminal(out io.Writer) (width, height int, ok bool) {
	file, ok := out.(*os.File)
	if !ok || os.Getenv("TERM") == "dumb" || os.Getenv("TERM") == "" || !term.IsTerminal(int(file.Fd())) {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(file.Fd()))
	return width, height, err == nil && width > 20
}

// colourful follows https://no-color.org.
func colourful() bool { return os.Getenv("NO_COLOR") == "" }

// patience is how long janusd is given to look at a Transaction before that is remarked.
const patience = 10 * time.Second

// lines prints what has become different since the last version.
type lines struct {
	out      io.Writer
	patience time.Duration
	state    []api.ItemState
	reason   string
	remark   *time.Timer
	// told are the sentences about items that were printed; nil if nobody asks for them.
	told map[string]bool
}

func (l *lines) update(t *api.Transaction) {
	if l.unlooked(t) {
		return
	}
	for i, item := range t.Status.Items {
		if i == len(l.state) {
			l.state = append(l.state, api.ItemPending)
		}
		state := item.State
		if plan.Unready(&item) {
			state = api.ItemCommitting // It is in effect, and not done.
		}
		if state != l.state[i] {
			l.state[i] = state
			if settles(state) {
				text := itemSentence(t, i)
				write(l.out, "  %s\n", text)
				if l.told != nil {
					l.told[text] = true
				}
			}
		}
	}
	if _, reason, _ := reasonOf(t); reason != l.reason {
		l.reason = reason
		if isNews(t, reason) {
			write(l.out, "%s\n", sentence(t))
		}
	}
}

// settles reports whether something about an item has ended. What is only begun is worth no line.
func settles(state api.ItemState) bool {
	switch state {
	case api.ItemCommitted, api.ItemRolledBack, api.ItemRejected, api.ItemUnresolved, api.ItemSkipped:
		return true
	default:
		return false
	}
}

// isNews reports whether a reason is worth a line: what is waited for and what has gone wrong are. A
// phase that begins is not; how a Transaction ends is said by its summary; and contents that are not
// stored yet are stored by the command that waits.
func isNews(t *api.Transaction, reason string) bool {
	return reason != string(phaseOf(t)) && reason != errclass.ContentMissing && !t.Status.Phase.Terminal()
}

// unlooked reports whether there is nothing to print yet, and sees to it that a person who
// waits in vain learns why.
func (l *lines) unlooked(t *api.Transaction) bool {
	switch {
	case !unheard(t):
		l.done()
		return false
	case l.remark == nil:
		l.remark = time.AfterFunc(l.patience, func() {
			write(l.out, "%s; to see whether one runs: kubectl janus check\n", sentence(t))
		})
	}
	return true
}

func (l *lines) done() {
	if l.remark != nil {
		l.remark.Stop()
	}
}

const (
	green, red, yellow, grey = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[90m"
)

// signOf returns what an item is marked with, and its colour.
func signOf(item *api.Item) (sign, colour string) {
	if plan.Failed(item) {
		return "✗", red
	}
	if plan.Unready(item) || plan.Restoring(item) {
		return "⧗", yellow
	}
	switch item.State {
	case api.ItemCommitted:
		return "✓", green
	case api.ItemRolledBack:
		return "↩", yellow
	case api.ItemRejected, api.ItemUnresolved:
		return "✗", red
	case api.ItemCommitting, api.ItemRollingBack:
		return "…", yellow
	default:
		return "·", grey
	}
}

// cells is how many columns of a terminal a line takes. Escapes have none, and characters of East
// Asia and pictures have two.
func cells(line string) int {
	n := 0
	eachCell(line, func(_, width int) bool { n += width; return true })
	return n
}

// cut shortens a line to the width of the terminal.
func cut(line string, width int) string {
	n, end := 0, len(line)
	eachCell(line, func(at, cells int) bool {
		if n += cells; n > width-1 {
			end = at
			return false
		}
		return true
	})
	return line[:end]
}

// eachCell calls visit with the place and the width of each character of a line, until that says no.
func eachCell(line string, visit func(at, width int) bool) {
	escape := false
	for i, r := range line {
		width := 1
		switch {
		case r == '\x1b':
			escape = true
			continue
		case escape:
			escape = r != 'm'
			continue
		case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xd7ff, r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xff60, r >= 0x1f000:
			width = 2
		}
		if !visit(i, width) {
			return
		}
	}
}
