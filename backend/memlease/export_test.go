package memlease

// Sizes answers how many lines, claims and remembered IDs the store keeps, and how many
// slots its queue of memos has.
func (s *Store) Sizes() (n [4]int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return [4]int{len(s.lines), len(s.claims), len(s.remembered), cap(s.memos)}
}

// Watched answers how many keys somebody watches and how many inboxes somebody reads.
func (s *Store) Watched() (keys, inboxes int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.watches), len(s.inboxes)
}

// Blocks answers in how many blocks the line of key counts its claims.
func (s *Store) Blocks(key string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return cap(s.lines[key].order.counts)
}
