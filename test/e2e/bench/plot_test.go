package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// The size of a plot, and the room around it for what is written there.
const (
	plotWidth, plotHeight = 720, 440
	marginLeft, marginTop = 70, 20
	marginRight           = 170
	marginBottom          = 50
)

// colours are those of the columns; they can be told apart by those who see few.
var colours = []string{"#000000", "#777777", "#0072b2", "#e69f00", "#d55e00", "#cc79a7", "#009e73"}

// plot draws the medians of a table over the numbers that its rows are named by, both by
// powers of ten, as SVG.
func (t table) plot() string {
	var xs []float64
	low, high := math.Inf(1), math.Inf(-1)
	for _, r := range t.rows {
		n, err := strconv.ParseFloat(r.name, 64)
		if err != nil {
			return ""
		}
		xs = append(xs, n)
		for _, column := range t.columns {
			ms := milliseconds(median(r.times[column]))
			low, high = min(low, ms), max(high, ms)
		}
	}
	x := scale(xs[0], xs[len(xs)-1], marginLeft, plotWidth-marginRight)
	y := scale(low, high, plotHeight-marginBottom, marginTop)
	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", plotWidth, plotHeight)
	fmt.Fprintf(&b, `<title>%s: milliseconds by %s</title>`+"\n"+`<rect width="100%%" height="100%%" fill="#ffffff"/>`+"\n", t.title, t.first)
	for _, n := range xs {
		fmt.Fprintf(&b, `<line x1="%.1f" x2="%.1f" y1="%d" y2="%d" stroke="#dddddd"/><text x="%.1f" y="%d" text-anchor="middle">%.0f</text>`+"\n",
			x(n), x(n), marginTop, plotHeight-marginBottom, x(n), plotHeight-marginBottom+18, n)
	}
	for ms := math.Pow(10, math.Ceil(math.Log10(low))); ms <= high; ms *= 10 {
		fmt.Fprintf(&b, `<line x1="%d" x2="%d" y1="%.1f" y2="%.1f" stroke="#dddddd"/><text x="%d" y="%.1f" text-anchor="end">%g ms</text>`+"\n",
			marginLeft, plotWidth-marginRight, y(ms), y(ms), marginLeft-8, y(ms)+4, ms)
	}
	for i, column := range t.columns {
		var points []string
		last := 0.0
		for n, r := range t.rows {
			last = y(milliseconds(median(r.times[column])))
			points = append(points, fmt.Sprintf("%.1f,%.1f", x(xs[n]), last))
		}
		fmt.Fprintf(&b, `<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/><text x="%d" y="%.1f" fill="%s">%s</text>`+"\n",
			strings.Join(points, " "), colours[i%len(colours)], plotWidth-marginRight+8, last+4, colours[i%len(colours)], column)
	}
	fmt.Fprintf(&b, `<text x="%d" y="%d" text-anchor="middle">%s</text>`+"\n</svg>\n", (marginLeft+plotWidth-marginRight)/2, plotHeight-10, t.first)
	return b.String()
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// scale maps a range to another by powers of ten.
func scale(low, high float64, from, to int) func(float64) float64 {
	return func(v float64) float64 {
		if high <= low {
			return float64(from)
		}
		return float64(from) + float64(to-from)*(math.Log10(v)-math.Log10(low))/(math.Log10(high)-math.Log10(low))
	}
}

func TestAPlotHasALineForEachColumn(t *testing.T) {
	svg := table{title: "T", first: "n", columns: []string{"bare", "other"}, rows: []row{
		{name: "10", times: map[string][]time.Duration{"bare": {10 * time.Millisecond}, "other": {20 * time.Millisecond}}},
		{name: "1000", times: map[string][]time.Duration{"bare": {time.Second}, "other": {100 * time.Second}}},
	}}.plot()
	assert.Contains(t, svg, `<polyline points="70.0,390.0 550.0,205.0" fill="none" stroke="#000000"`)
	assert.Contains(t, svg, `>other</text>`)
	assert.Contains(t, svg, `>100 ms</text>`)
	assert.Equal(t, 2, strings.Count(svg, "<polyline"))
	assert.Empty(t, table{rows: []row{{name: "no number"}}}.plot())
}
