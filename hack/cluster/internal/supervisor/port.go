package supervisor

import (
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/sys/unix"
)

// reservedPort is a TCP port of the loopback interface that is bound but not
// listened on. A component that also sets SO_REUSEPORT can bind and serve it,
// and nobody else can: the kernel lets only sockets of the same user share a
// port, and never hands out a bound port as a free one.
type reservedPort struct {
	fd     int
	number int
}

// reservePort takes a free port and holds it until release.
func reservePort() (reservedPort, error) {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return reservedPort{}, fmt.Errorf("reserve a port: %w", err)
	}
	number, err := bindLoopback(fd)
	if err != nil {
		return reservedPort{}, errors.Join(fmt.Errorf("reserve a port: %w", err), unix.Close(fd))
	}
	return reservedPort{fd: fd, number: number}, nil
}

// bindLoopback binds fd to a free loopback port and returns its number.
func bindLoopback(fd int) (int, error) {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_REUSEPORT, 1); err != nil {
		return 0, fmt.Errorf("set SO_REUSEPORT: %w", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return 0, fmt.Errorf("bind 127.0.0.1: %w", err)
	}
	addr, err := unix.Getsockname(fd)
	if err != nil {
		return 0, fmt.Errorf("read the bound address: %w", err)
	}
	inet, ok := addr.(*unix.SockaddrInet4)
	if !ok {
		return 0, fmt.Errorf("bound address is a %T", addr)
	}
	return inet.Port, nil
}

func (p reservedPort) String() string { return strconv.Itoa(p.number) }

// url is the HTTPS address of the port.
func (p reservedPort) url() string {
	return "https://" + net.JoinHostPort("127.0.0.1", p.String())
}

// release releases the port.
func (p reservedPort) release() error { return unix.Close(p.fd) }
