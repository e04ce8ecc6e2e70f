package main

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	api "janus.io/janus/api/v1alpha1"
)

// window is a terminal as far as a live view needs one: lines that wrap and scroll, a cursor that goes
// up, and what is below it cleared. What has scrolled away is in scrolled.
type window struct {
	width, height int
	scrolled      []string
	rows          []string
	at            int // the row of the cursor, which is at its beginning after each write
}

var control = regexp.MustCompile(`^\x1b\[([0-9;]*)([A-Za-z])`)

func (w *window) Write(b []byte) (int, error) {
	text := string(b)
	for text != "" {
		if m := control.FindStringSubmatch(text); m != nil {
			text = text[len(m[0]):]
			switch n, _ := strconv.Atoi(m[1]); m[2] {
			case "A":
				w.at = max(w.at-n, 0)
			case "J":
				w.rows = w.rows[:w.at]
			case "m":
			default:
				panic("the terminal knows no " + strconv.Quote(m[0]))
			}
			continue
		}
		r := []rune(text)[0]
		text = text[len(string(r)):]
		switch r {
		case '\r':
		case '\n':
			w.next()
		default:
			w.put(r)
		}
	}
	return len(b), nil
}

func (w *window) put(r rune) {
	for len(w.rows) <= w.at {
		w.rows = append(w.rows, "")
	}
	if len([]rune(w.rows[w.at])) == w.width {
		w.next()
		w.put(r)
		return
	}
	w.rows[w.at] += string(r)
}

func (w *window) next() {
	for len(w.rows) <= w.at {
		w.rows = append(w.rows, "")
	}
	if w.at++; w.at == w.height {
		w.scrolled, w.rows, w.at = append(w.scrolled, w.rows[0]), w.rows[1:], w.at-1
	}
}

// resize wraps the lines again, as terminals do. The cursor stays behind them.
func (w *window) resize(width, height int) {
	lines := w.rows[:w.at]
	w.width, w.height, w.rows, w.at = width, height, nil, 0
	for _, line := range lines {
		_, _ = w.Write([]byte(line + "\n"))
	}
}

func (w *window) String() string { return strings.Join(w.rows, "\n") }

var began = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// viewOf is a view on a window, 72 seconds after the beginning.
func viewOf(w *window) *live {
	return &live{out: w, size: func() (int, int) { return w.width, w.height }, now: func() time.Time { return began.Add(72 * time.Second) }}
}

// busy is a Transaction of so many changes, of which some are in flight, waited for and failed.
func busy(n int) *api.Transaction {
	t := &api.Transaction{}
	t.Namespace, t.Name = "shop", "release"
	t.Status.Phase, t.Status.StartTime = api.PhaseCommitting, &metav1.Time{Time: began}
	timeout := api.Duration("5m")
	for i := range n {
		target := api.Target{APIVersion: "apps/v1", Kind: "Deployment", Namespace: "shop", Name: fmt.Sprintf("web-%d", i)}
		change := api.Change{Type: api.Patch, Target: target}
		item := api.Item{Name: fmt.Sprint(i), Target: target, State: api.ItemPending}
		switch {
		case i < n/2:
			item.State = api.ItemCommitted
		case i < n/2+4:
			item.State = api.ItemCommitting
		case i == n/2+4:
			item.State, item.WaitStartTime = api.ItemCommitted, &metav1.Time{Time: began.Add(time.Minute)}
			change.ReadyWhen = &api.ReadyWhen{Status: api.StatusReady, Timeout: &timeout}
		case i == n/2+5:
			item.State, item.Reason = api.ItemRejected, "Invalid"
		}
		t.Spec.Changes, t.Status.Items = append(t.Spec.Changes, change), append(t.Status.Items, item)
	}
	t.Status.Conditions = []metav1.Condition{{
		Type: api.ConditionReady, Reason: "NotReady", Message: "waiting for " + t.Status.Items[min(n/2+4, n-1)].Target.String() + ": 1/3 Pods ready",
	}}
	return t
}

func TestALiveViewOfManyItemsFitsTheWindow(t *testing.T) {
	w := &window{width: 100, height: 24}
	_, _ = w.Write([]byte("$ kubectl janus run\n"))
	viewOf(w).update(busy(300))
	assert.Equal(t, strings.TrimPrefix(`
$ kubectl janus run
shop/release ████████████████████░░░░░░░░░░░░░░░░░░░░ 150/300 1m12s
  150 done, 1 waiting, 4 in flight, 144 to do, 1 failed
  ✗ 155 Patch Deployment shop/web-155: Rejected (Invalid)
  ⧗ 154 Patch Deployment shop/web-154: Waiting 12s of 5m: 1/3 Pods ready
  … 150 Patch Deployment shop/web-150: Committing
  … 151 Patch Deployment shop/web-151: Committing
  … 152 Patch Deployment shop/web-152: Committing
  … 153 Patch Deployment shop/web-153: Committing
  Committing (NotReady): waiting for Deployment shop/web-154: 1/3 Pods ready
`, "\n"), w.String()+"\n")
	assert.Empty(t, w.scrolled)
}

// Whatever the size, what is drawn replaces what was drawn, and nothing of it scrolls away.
func TestALiveViewFitsEveryWindowAndFollowsItsSize(t *testing.T) {
	sizes := [][2]int{{100, 24}, {40, 24}, {40, 6}, {21, 2}, {30, 3}, {120, 5}, {80, 50}}
	for _, from := range sizes {
		for _, to := range sizes {
			w := &window{width: from[0], height: from[1]}
			l := viewOf(w)
			for step := range 5 {
				l.update(busy(300 - step))
				require.LessOrEqual(t, len(w.rows), w.height, "%v", from)
			}
			require.Empty(t, w.scrolled, "%v", from)
			w.resize(to[0], to[1])
			l.update(busy(300))
			require.LessOrEqual(t, len(w.rows), w.height, "%v to %v", from, to)
			fresh := &window{width: to[0], height: to[1]}
			viewOf(fresh).update(busy(300))
			assert.Equal(t, fresh.String(), w.String(), "%v to %v", from, to)
		}
	}
}

func TestWhatIsSaidMeanwhileStandsAboveTheLiveView(t *testing.T) {
	w := &window{width: 80, height: 10}
	s := newSession(genericiooptions.IOStreams{In: strings.NewReader(""), Out: w, ErrOut: w})
	s.screen = viewOf(w)
	s.screen.update(busy(6))
	s.say("%s", "Transaction shop/release cannot be watched for now")
	assert.Equal(t, 1, strings.Count(w.String(), "shop/release █"))
	assert.True(t, strings.HasPrefix(w.String(), "Transaction shop/release cannot be watched for now\nshop/release █"), w.String())
	s.screen.done()
	s.say("%s", "the end")
	assert.True(t, strings.HasSuffix(w.String(), "\nthe end"), w.String())
	assert.Equal(t, 1, strings.Count(w.String(), "shop/release █"))
}

// The time goes on though no version of the Transaction comes.
func TestTheLiveViewCountsSeconds(t *testing.T) {
	w := &window{width: 80, height: 10}
	l := viewOf(w)
	l.open(busy(20))
	defer l.done()
	require.Eventually(t, func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.now = func() time.Time { return began.Add(90 * time.Second) }
		return strings.Contains(w.String(), "1m30s") && strings.Contains(w.String(), "Waiting 30s of 5m")
	}, 10*time.Second, 10*time.Millisecond)
}

func TestWhatIsWaitedForIsSaidToWaitAndForWhat(t *testing.T) {
	txn := busy(6) // Items 3 to 5: two in flight are cut off by the number.
	txn.Status.Items[1].WaitStartTime = &metav1.Time{Time: began}
	txn.Status.Conditions[0].Message = "waiting for Deployment shop/web-1: 0/1 Pods ready; old Pods; Deployment shop/web-2: 1/2 Pods ready"
	now := began.Add(65 * time.Second)
	assert.Equal(t, "Waiting 1m5s: 0/1 Pods ready; old Pods", waited(txn, 1, now))
	assert.Empty(t, waited(txn, 0, now))
	hold := api.Duration("10s")
	txn.Spec.Changes[1].ReadyWhen = &api.ReadyWhen{Status: api.StatusReady, HoldFor: &hold}
	txn.Status.Items[1].HoldStartTime = &metav1.Time{Time: began}
	assert.Equal(t, "Waiting 1m5s: ready, and must stay so for 10s", waited(txn, 1, now))
	assert.Equal(t, "1 Patch Deployment shop/web-1: Committed", itemSentence(&api.Transaction{Spec: txn.Spec, Status: api.TransactionStatus{Items: []api.Item{
		txn.Status.Items[0], {Name: "1", Target: txn.Status.Items[1].Target, State: api.ItemCommitted},
	}}}, 1))
}

func TestDurationsAreShort(t *testing.T) {
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 12 * time.Second: "12s", 5 * time.Minute: "5m", 90 * time.Second: "1m30s", time.Hour: "1h", 90 * time.Minute: "1h30m", 20 * time.Minute: "20m", 10 * time.Hour: "10h",
	} {
		assert.Equal(t, want, seconds(d))
	}
}

func TestCharactersOfEastAsiaTakeTwoColumns(t *testing.T) {
	assert.Equal(t, 6, cells("a\x1b[32m日本\x1b[0m✓"))
	assert.Equal(t, "a日", cut("a日本", 5))
}
