package wiring

import "k8s.io/apimachinery/pkg/types"

// turn has room for one of those who read a source of a Transaction.
func (s *sources) turn(txn types.UID) chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.turns[txn] == nil {
		s.turns[txn] = make(chan struct{}, 1)
	}
	return s.turns[txn]
}

func (s *sources) get(txn types.UID, i int, digest string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	found, ok := s.kept[txn][i]
	return found.data, ok && found.digest == digest && digest != ""
}

// keep keeps a content. When there is no room left, it begins afresh: the contents are used
// one after the other, and what was kept first is needed last.
func (s *sources) keep(txn types.UID, i int, p pinned) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.size+len(p.data) > keptBytes {
		s.kept, s.size = map[types.UID]map[int]pinned{}, 0
	}
	if s.kept[txn] == nil {
		s.kept[txn] = map[int]pinned{}
	}
	s.size += len(p.data) - len(s.kept[txn][i].data)
	s.kept[txn][i] = p
}

func (s *sources) forget(txn types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.kept[txn] {
		s.size -= len(p.data)
	}
	delete(s.kept, txn)
	delete(s.turns, txn)
}
