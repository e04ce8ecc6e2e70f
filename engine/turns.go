package engine

// turns lets one at a time go on, as a mutex does. A request may be under way meanwhile:
// to wait for a turn is to wait for a channel, which the virtual time of the simulation
// knows, and not for a mutex, which it does not.
type turns chan struct{}

func newTurns() turns { return make(turns, 1) }

// take waits for a turn, and returns what ends it.
func (t turns) take() (done func()) {
	t <- struct{}{}
	return func() { <-t }
}
