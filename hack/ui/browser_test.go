package ui

import (
	"context"
	"fmt"
	"net/url"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"

	"janus.io/janus/test/harness"
)

// browser is a tab of Chromium and what has been noticed in it.
type browser struct {
	t   *testing.T
	ctx context.Context //nolint:containedctx // It is how chromedp hands a tab on.

	mu       sync.Mutex
	troubles []string
	hosts    map[string]bool
}

// chromium finds the browser. Without one the test fails.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{filepath.Join(harness.Root(), "bin", "chromium"), "chromium"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Fatal("Chromium is needed: run make bin/chromium")
	return ""
}

func open(t *testing.T, more ...chromedp.ExecAllocatorOption) *browser {
	t.Helper()
	options := slices.Concat(chromedp.DefaultExecAllocatorOptions[:], []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.WindowSize(1100, 1350), chromedp.WSURLReadTimeout(2 * time.Minute),
	}, more)
	ctx, cancel := context.WithTimeout(t.Context(), 8*time.Minute)
	t.Cleanup(cancel)
	ctx, stop := chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(stop)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &browser{t: t, ctx: ctx, hosts: map[string]bool{}}
	chromedp.ListenTarget(ctx, b.notice)
	b.do(network.Enable(), log.Enable(), runtime.Enable())
	return b
}

// notice keeps what is complained of and who is asked for anything.
func (b *browser) notice(event any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		u, err := url.Parse(e.Request.URL)
		if err != nil {
			b.troubles = append(b.troubles, err.Error())
			return
		}
		b.hosts[u.Scheme+"://"+u.Host] = true
	case *log.EventEntryAdded:
		b.troubles = append(b.troubles, fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL))
	case *runtime.EventExceptionThrown:
		b.troubles = append(b.troubles, e.ExceptionDetails.Error())
	case *runtime.EventConsoleAPICalled:
		b.troubles = append(b.troubles, "console."+string(e.Type))
	}
}

func (b *browser) noticed() (troubles []string, hosts map[string]bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.troubles, b.hosts
}

func (b *browser) do(actions ...chromedp.Action) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Run(b.ctx, actions...))
}

// press sends keys to whatever has the focus, as a keyboard does: what a key writes comes with
// its pressing, so that a page which takes the key for itself gets no text.
func (b *browser) press(keys string) {
	b.t.Helper()
	for _, r := range keys {
		k, known := kb.Keys[r]
		require.True(b.t, known, "key %q", r)
		down := input.DispatchKeyEvent(input.KeyDown).WithKey(k.Key).WithCode(k.Code).WithWindowsVirtualKeyCode(k.Windows)
		if k.Print || k.Text != "" {
			down = down.WithText(k.Text)
		}
		up := input.DispatchKeyEvent(input.KeyUp).WithKey(k.Key).WithCode(k.Code).WithWindowsVirtualKeyCode(k.Windows)
		b.do(down, up)
	}
}

// value evaluates an expression to text.
func (b *browser) value(expression string) (text string) {
	b.t.Helper()
	b.do(chromedp.Evaluate("String("+expression+")", &text))
	return text
}

// becomes waits until an expression has a value.
func (b *browser) becomes(want, expression string) {
	b.t.Helper()
	got := ""
	for deadline := time.Now().Add(30 * time.Second); time.Now().Before(deadline); time.Sleep(100 * time.Millisecond) {
		if got = b.value(expression); got == want {
			return
		}
	}
	require.Equal(b.t, want, got, expression)
}
