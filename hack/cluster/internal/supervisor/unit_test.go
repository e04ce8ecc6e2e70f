package supervisor

import (
	"bytes"
	"crypto/x509"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func TestParseFlagsRefusesContradictions(t *testing.T) {
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"--nodes=-1"}, "must not be negative"},
		{[]string{"--nodes=2"}, "needs --kwok-binary"},
		{[]string{"--nodes=2", "--kwok-binary=x", "--controller-manager=false"}, "needs --controller-manager"},
		{[]string{"--remove-dir"}, "needs --dir"},
		{[]string{"now"}, "takes no argument"},
		{[]string{"--unknown"}, "not defined"},
	} {
		_, err := ParseFlags(test.args, io.Discard)
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q", test.args, err, test.want)
		}
	}
	if _, err := ParseFlags([]string{"--help"}, io.Discard); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("got %v, want flag.ErrHelp", err)
	}
}

func TestParseFlagsDefaults(t *testing.T) {
	got, err := ParseFlags(nil, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	if want := (Options{ControllerManager: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestAVersionIsEmulatedIfOneIsNamed(t *testing.T) {
	c := component{name: apiServer, args: []string{apiServer}}
	if got := c.emulating("").args; len(got) != 1 {
		t.Errorf("got %q without a version", got)
	}
	if got := c.emulating("1.33").args; len(got) != 2 || got[1] != "--emulated-version=1.33" {
		t.Errorf("got %q", got)
	}
}

func TestFeatureGatesArePassedOnIfAnyAreNamed(t *testing.T) {
	c := component{name: apiServer, args: []string{apiServer}}
	if got := c.with("").args; len(got) != 1 {
		t.Errorf("got %q without gates", got)
	}
	if got := c.with("A=true,B=false").args; len(got) != 2 || got[1] != "--feature-gates=A=true,B=false" {
		t.Errorf("got %q", got)
	}
}

func TestTheMinorVersionOfWhatRuns(t *testing.T) {
	for version, want := range map[string]int{"v1.36.3": 36, "v1.37.0-rc.0": 37, "v0.0.0": 0, "(devel)": 0, "": 0} {
		if got := minor(version); got != want {
			t.Errorf("%q: got %d, want %d", version, got, want)
		}
	}
	if got := minorOf("/nonexistent"); got != 0 {
		t.Errorf("got %d of no program", got)
	}
}

func TestNodesImplyTheSchedulerAndPathsBecomeAbsolute(t *testing.T) {
	got, err := Options{Nodes: 1, KwokBinary: "kwok", AuditLog: "/a"}.absolute()
	if err != nil {
		t.Fatal(err)
	}
	if !got.Scheduler || !filepath.IsAbs(got.KwokBinary) || got.AuditLog != "/a" || got.Dir != "" {
		t.Errorf("got %+v", got)
	}
}

func TestReservedPortCanBeSharedButNotTaken(t *testing.T) {
	p, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = p.release() }()
	address := net.JoinHostPort("127.0.0.1", p.String())
	if _, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("a stranger gets %v, want the address to be in use", err)
	}
	sharing := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var failed error
		err := c.Control(func(fd uintptr) {
			failed = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
		})
		return errors.Join(err, failed)
	}}
	l, err := sharing.Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatalf("the component: %v", err)
	}
	defer func() { _ = l.Close() }()
	// Every connection reaches the component, none the reservation.
	for range 50 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = conn.Close()
	}
}

func TestReservedPortsDiffer(t *testing.T) {
	seen := map[int]bool{}
	for range 200 {
		p, err := reservePort()
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = p.release() }()
		if seen[p.number] {
			t.Fatalf("port %s was handed out twice", p)
		}
		seen[p.number] = true
	}
}

func TestCertificatesAreAcceptedForWhatTheyAreFor(t *testing.T) {
	now := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	a, err := newAuthority(t.TempDir(), now)
	if err != nil {
		t.Fatal(err)
	}
	serving, err := a.serving()
	if err != nil {
		t.Fatal(err)
	}
	client, err := a.client("c", "system:someone", "group")
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(a.cert)
	for _, test := range []struct {
		id    identity
		name  string
		usage x509.ExtKeyUsage
		ok    bool
	}{
		{serving, "127.0.0.1", x509.ExtKeyUsageServerAuth, true},
		{serving, "example.com", x509.ExtKeyUsageServerAuth, false},
		{serving, "", x509.ExtKeyUsageClientAuth, false},
		{client, "", x509.ExtKeyUsageClientAuth, true},
		{client, "", x509.ExtKeyUsageServerAuth, false},
	} {
		config, err := a.tlsConfig(test.id)
		if err != nil {
			t.Fatal(err)
		}
		leaf := config.Certificates[0].Leaf
		_, err = leaf.Verify(x509.VerifyOptions{
			Roots: roots, CurrentTime: now, DNSName: test.name, KeyUsages: []x509.ExtKeyUsage{test.usage},
		})
		if (err == nil) != test.ok {
			t.Errorf("%s for %q and usage %d: %v", leaf.Subject, test.name, test.usage, err)
		}
	}
}

func TestPrivateFilesAreReadableByTheOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	if err := writeSigningKey(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %s", info.Mode())
	}
}

func TestLogTailPassesWholeLinesOnAndKeepsTheLast(t *testing.T) {
	var out bytes.Buffer
	l := &logTail{out: &out, prefix: "etcd: "}
	for i := range tailLines + 3 {
		_, _ = fmt.Fprintf(l, "line %d\n", i)
	}
	_, _ = l.Write([]byte("no end"))
	last := l.last()
	if len(last) != tailLines+1 || last[0] != "line 3" || !slices.Contains(last, "no end") {
		t.Errorf("last lines are %q", last)
	}
	if !strings.HasPrefix(out.String(), "etcd: line 0\netcd: line 1\n") || strings.Contains(out.String(), "no end") {
		t.Errorf("passed on %q", out.String())
	}
}
