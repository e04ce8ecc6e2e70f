package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
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
		return &live{out: s.ErrOut, width: width, height: height, colour: colourful()}
	}
	return &lines{out: s.ErrOut, patience: patience}
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
}

func (l *lines) update(t *api.Transaction) {
	if l.unlooked(t) {
		return
	}
	for i, item := range t.Status.Items {
		if i == len(l.state) {
			l.state = append(l.state, api.ItemPending)
		}
		if item.State != l.state[i] {
			l.state[i] = item.State
			if settles(item.State) {
				write(l.out, "  %s\n", itemSentence(t, i))
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

// live draws the Transaction again in place of what it has drawn before.
type live struct {
	out    io.Writer
	width  int
	height int
	colour bool
	drawn  int
}

// shown is how many items are drawn at most: those about which something happens.
const shown = 20

// room is how many items are drawn on this terminal. What has scrolled away cannot be drawn
// again, and three lines are for the number of items, the sentence and the cursor.
func (l *live) room() int { return max(min(shown, l.height-3), 1) }

// open draws the Transaction at once, so that something is seen though nothing happens.
func (l *live) open(t *api.Transaction) { l.update(t) }

func (l *live) update(t *api.Transaction) {
	var text []string
	for i := range t.Status.Items {
		text = append(text, l.item(t, i))
	}
	if room := l.room(); len(text) > room {
		text = append(around(t, text, room), fmt.Sprintf("  … %d items in all", len(t.Status.Items)))
	}
	text = append(text, errclass.OneLine(sentence(t)))
	var b strings.Builder
	if l.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", l.drawn)
	}
	for _, line := range text {
		b.WriteString("\x1b[2K" + cut(line, l.width) + "\x1b[0m\n")
	}
	b.WriteString("\x1b[J")
	l.drawn = len(text)
	_, _ = io.WriteString(l.out, b.String())
}

func (l *live) done() {}

func (l *live) item(t *api.Transaction, i int) string {
	item := t.Status.Items[i]
	sign, colour := signOf(&item)
	line := fmt.Sprintf("%s %-12s %s %s %s", sign, item.State, item.Name, typeOf(t, i), item.Target.String())
	if item.Reason != "" {
		line += " (" + item.Reason + ")"
	}
	if plan.Unready(&item) {
		line += ", waiting since " + item.WaitStartTime.Format(time.TimeOnly)
	}
	if plan.Restoring(&item) {
		line += ", restored and waiting since " + item.RollbackWait.StartTime.Format(time.TimeOnly)
	}
	line = errclass.OneLine(line)
	if l.colour {
		line = colour + line
	}
	return line
}

const (
	green, red, yellow, grey = "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[90m"
)

// signOf returns what an item is marked with, and its colour.
func signOf(item *api.Item) (sign, colour string) {
	if plan.Failed(item) {
		return "✗", red
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

// around picks the lines of the items around the first that is not done.
func around(t *api.Transaction, text []string, room int) []string {
	at := slices.IndexFunc(t.Status.Items, func(i api.Item) bool {
		return i.State != api.ItemCommitted && i.State != api.ItemSkipped && !plan.Failed(&i)
	})
	from := min(max(at-room/2, 0), len(text)-room)
	return text[from : from+room]
}

// cut shortens a line to the width of the terminal. Escapes have no width.
func cut(line string, width int) string {
	n, escape := 0, false
	for i, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			if n++; n > width-1 {
				return line[:i]
			}
		}
	}
	return line
}
