package memlease

// blockBits makes blocks of 64 ordinals.
const blockBits = 6

// order counts who is in a line, block by block of the ordinals it gave out, so that
// "how many stand ahead" does not walk a long line.
type order struct {
	next   int     // ordinal to give out
	base   int     // block of counts[0]
	counts []int32 // how many of each block are still there
}

// add gives out the next ordinal.
func (o *order) add() int {
	n := o.next
	o.next++
	if n>>blockBits-o.base == len(o.counts) {
		o.counts = append(o.counts, 0)
	}
	o.counts[len(o.counts)-1]++
	return n
}

// remove takes one back. Blocks that are empty in front are given up; the last block
// only together with the whole order, since add goes on in it.
func (o *order) remove(ordinal int) {
	o.counts[ordinal>>blockBits-o.base]--
	for len(o.counts) > 1 && o.counts[0] == 0 {
		o.counts = o.counts[1:]
		o.base++
	}
	if o.counts[0] == 0 {
		o.reset()
	}
}

func (o *order) reset() { *o = order{counts: o.counts[:0]} }

// sparse reports whether n members have left so many gaps that numbering them anew pays.
func (o *order) sparse(n int) bool { return len(o.counts) > n>>(blockBits-1)+16 }

// ahead counts who stands before st: whole blocks by their count, its own by walking.
func (o *order) ahead(st *stand) int {
	block := st.ordinal >> blockBits
	n := 0
	for _, c := range o.counts[:block-o.base] {
		n += int(c)
	}
	for q := st.prev; q != nil && q.ordinal>>blockBits == block; q = q.prev {
		n++
	}
	return n
}
