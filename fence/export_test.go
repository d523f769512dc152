package fence

// Known is how many resources the gate has in memory.
func (g *Gate) Known() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.known)
}
