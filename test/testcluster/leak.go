package testcluster

// Connections are the goroutines that a test leaves and that are no leak: those of
// connections that client-go keeps for later. They are told by a function in their stacks.
func Connections() []string {
	return []string{
		"net/http.(*persistConn).readLoop",
		"net/http.(*persistConn).writeLoop",
		"golang.org/x/net/http2.(*ClientConn).readLoop",
		"golang.org/x/net/http2.(*clientConnReadLoop).run",
		"net/http.(*http2clientConnReadLoop).run",
	}
}
