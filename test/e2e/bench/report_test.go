package bench

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// table is a table of times, as ratios to its first column, or of what is said.
type table struct {
	title, first string
	columns      []string
	rows         []row
}

// row is a line of a table: how long each contestant took, every time, or texts.
type row struct {
	name  string
	times map[string][]time.Duration
	texts []string
}

// measure has a competitor perform, and notes how long it took.
func (r *row) measure(ctx context.Context, name string, run func(context.Context) error) error {
	began := time.Now()
	if err := run(ctx); err != nil {
		return err
	}
	r.times[name] = append(r.times[name], time.Since(began))
	return nil
}

// write writes the table in Markdown. A time is the median, in milliseconds, and in
// parentheses its ratio to the median of the first column.
func (t table) write(out io.Writer) {
	_, _ = fmt.Fprintf(out, "\n### %s\n\n| %s | %s |\n|%s\n", t.title, t.first, strings.Join(t.columns, " | "), strings.Repeat("---|", len(t.columns)+1))
	for _, r := range t.rows {
		texts := r.texts
		if r.times != nil {
			base := median(r.times[t.columns[0]])
			for i, column := range t.columns {
				m := median(r.times[column])
				text := fmt.Sprintf("%.1f ms", float64(m)/float64(time.Millisecond))
				if i > 0 {
					text = fmt.Sprintf("**%.2f** (%s)", float64(m)/float64(base), text)
				}
				texts = append(texts, text)
			}
		}
		_, _ = fmt.Fprintf(out, "| %s | %s |\n", r.name, strings.Join(texts, " | "))
	}
}

// median of some times; of an even number, the mean of the two in the middle.
func median(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(times))
	middle := len(sorted) / 2
	if len(sorted)%2 == 1 {
		return sorted[middle]
	}
	return (sorted[middle-1] + sorted[middle]) / 2
}
