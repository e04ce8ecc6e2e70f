package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	api "janus.io/janus/api/v1alpha1"
	"janus.io/janus/engine/plan"
	"janus.io/janus/internal/errclass"
)

// live draws a Transaction again and again in place of what it has drawn before: how much of it is
// made, and the items about which something happens. It never has more lines than the terminal,
// since what has scrolled away cannot be drawn again, and it asks for the size each time, since that
// of a window changes.
type live struct {
	out    io.Writer
	size   func() (width, height int)
	now    func() time.Time
	colour bool

	mu     sync.Mutex
	last   *api.Transaction
	widths []int // of the lines that are drawn, in cells
	stop   chan struct{}
}

// open draws the Transaction at once, so that something is seen though nothing happens, and again
// each second, since times go on.
func (l *live) open(t *api.Transaction) {
	l.update(t)
	l.stop = make(chan struct{})
	go func(stop <-chan struct{}) {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				return
			case <-tick.C:
				l.again()
			}
		}
	}(l.stop)
}

func (l *live) update(t *api.Transaction) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last = t
	l.draw()
}

// again draws what was drawn last, as it is by now.
func (l *live) again() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != nil {
		l.draw()
	}
}

// aside has text printed above the drawing.
func (l *live) aside(print func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, _ = io.WriteString(l.out, l.up())
	l.widths = nil
	print()
	if l.last != nil {
		l.draw()
	}
}

// done leaves what is drawn.
func (l *live) done() {
	if l.stop != nil {
		close(l.stop)
		l.stop = nil
	}
	l.mu.Lock() // A drawing that has begun is finished.
	defer l.mu.Unlock()
	l.last, l.widths = nil, nil
}

// up goes to the first of the lines that are drawn, and clears what is below. Lines that are wider
// than the terminal has become are several by now.
func (l *live) up() string {
	width, _ := l.size()
	rows := 0
	for _, n := range l.widths {
		rows += max((n+width-1)/width, 1)
	}
	if rows == 0 {
		return ""
	}
	return fmt.Sprintf("\r\x1b[%dA\x1b[J", rows)
}

func (l *live) draw() {
	width, height := l.size()
	var b strings.Builder
	b.WriteString(l.up())
	l.widths = l.widths[:0]
	for _, line := range l.frame(l.last, width, height) {
		line = cut(line, width)
		b.WriteString(line + "\x1b[0m\n")
		l.widths = append(l.widths, cells(line))
	}
	_, _ = io.WriteString(l.out, b.String())
}

// frame is what is drawn: one line more is for the cursor.
func (l *live) frame(t *api.Transaction, width, height int) []string {
	c := countsOf(t)
	lines := []string{l.bar(t, c, width)}
	if height > 4 {
		lines = append(lines, "  "+l.paint(grey, c.String()))
	}
	said := "  " + errclass.OneLine(phrase(t))
	room := height - 1 - len(lines) - 1
	rows := l.rows(t)
	if len(rows) > room {
		room = max(room-1, 0)
		rows = append(rows[:room:room], fmt.Sprintf("  … and %d more", len(rows)-room))
	}
	return append(append(lines, rows...), said)[:min(len(lines)+len(rows)+1, max(height-1, 1))]
}

// bar is how much of a Transaction is in effect, as a bar and in numbers, and for how long it runs.
func (l *live) bar(t *api.Transaction, c counts, width int) string {
	text := fmt.Sprintf(" %d/%d", c.done, c.wanted())
	if start := t.Status.StartTime; start != nil {
		until := l.now()
		if t.Status.CompletionTime != nil {
			until = t.Status.CompletionTime.Time
		}
		text += " " + seconds(until.Sub(start.Time))
	}
	name := errclass.OneLine(t.Namespace + "/" + t.Name)
	long := min(max(width-cells(name)-cells(text)-4, 5), 40)
	full := 0
	if n := c.wanted(); n > 0 {
		full = long * c.done / n
	}
	colour := green
	if t.Status.Phase == api.PhaseRollingBack || t.Status.Phase == api.PhaseRolledBack {
		colour = yellow
	}
	if t.Status.Phase == api.PhaseFailed {
		colour = red
	}
	return name + " " + l.paint(colour, strings.Repeat("█", full)) + l.paint(grey, strings.Repeat("░", long-full)) + text
}

// rows are the items about which something happens: what has failed, what is waited for, what is
// being made.
func (l *live) rows(t *api.Transaction) []string {
	var failed, waiting, active []string
	for i := range t.Status.Items {
		item := &t.Status.Items[i]
		switch {
		case hasFailed(item):
			failed = append(failed, l.row(t, i))
		case plan.Unready(item), plan.Restoring(item):
			waiting = append(waiting, l.row(t, i))
		case item.State == api.ItemCommitting, item.State == api.ItemRollingBack:
			active = append(active, l.row(t, i))
		}
	}
	return append(append(failed, waiting...), active...)
}

func (l *live) row(t *api.Transaction, i int) string {
	item := &t.Status.Items[i]
	sign, colour := signOf(item)
	line := fmt.Sprintf("  %s %s %s %s", sign, item.Name, typeOf(t, i), item.Target.String())
	switch wait := waited(t, i, l.now()); {
	case wait != "":
		line += ": " + wait
	case item.Reason != "":
		line += ": " + string(item.State) + " (" + item.Reason + ")"
	default:
		line += ": " + string(item.State)
	}
	return l.paint(colour, errclass.OneLine(line))
}

func (l *live) paint(colour, text string) string {
	if !l.colour || text == "" {
		return text
	}
	return colour + text + "\x1b[0m"
}

// hasFailed reports whether something is wrong with an item.
func hasFailed(item *api.Item) bool {
	return plan.Failed(item) || item.State == api.ItemRejected || item.State == api.ItemUnresolved
}

// counts are how many items are how far.
type counts struct{ done, waiting, active, pending, rolledBack, failed, skipped int }

func countsOf(t *api.Transaction) counts {
	var c counts
	for i := range t.Status.Items {
		switch item := &t.Status.Items[i]; {
		case hasFailed(item):
			c.failed++
		case plan.Unready(item), plan.Restoring(item):
			c.waiting++
		case item.State == api.ItemCommitted:
			c.done++
		case item.State == api.ItemCommitting, item.State == api.ItemRollingBack:
			c.active++
		case item.State == api.ItemRolledBack:
			c.rolledBack++
		case item.State == api.ItemSkipped:
			c.skipped++
		default:
			c.pending++
		}
	}
	if len(t.Status.Items) == 0 {
		c.pending = len(t.Spec.Changes)
	}
	return c
}

// wanted is how many there are but for those that are not wanted.
func (c counts) wanted() int {
	return c.done + c.waiting + c.active + c.pending + c.rolledBack + c.failed
}

func (c counts) String() string {
	var parts []string
	for _, one := range []struct {
		n    int
		text string
	}{
		{c.done, "done"}, {c.waiting, "waiting"}, {c.active, "in flight"}, {c.pending, "to do"}, {c.rolledBack, "rolled back"}, {c.failed, "failed"}, {c.skipped, "skipped"},
	} {
		if one.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", one.n, one.text))
		}
	}
	return strings.Join(parts, ", ")
}
