package memlease

import "math"

// expiries is a heap of stands by the expiry of their claims. A stand knows its slot,
// so it can be moved and removed from anywhere.
type expiries []*stand

func (h *expiries) push(st *stand) {
	st.slot = len(*h)
	*h = append(*h, st)
	h.up(st)
}

func (h *expiries) remove(st *stand) {
	q := *h
	last := q[len(q)-1]
	q[len(q)-1] = nil
	*h = shrunk(q[:len(q)-1])
	if last != st {
		(*h)[st.slot] = last
		last.slot = st.slot
		h.settle(last)
	}
}

// settle finds a stand its slot after its expiry has changed.
func (h expiries) settle(st *stand) {
	h.up(st)
	h.down(st)
}

func (h expiries) up(st *stand) {
	i := st.slot
	for i > 0 {
		parent := (i - 1) / 2
		if h[parent].claim.expiry <= st.claim.expiry {
			break
		}
		h.put(i, h[parent])
		i = parent
	}
	h.put(i, st)
}

func (h expiries) down(st *stand) {
	i := st.slot
	for {
		child := 2*i + 1
		if child >= len(h) {
			break
		}
		if child+1 < len(h) && h[child+1].claim.expiry < h[child].claim.expiry {
			child++
		}
		if st.claim.expiry <= h[child].claim.expiry {
			break
		}
		h.put(i, h[child])
		i = child
	}
	h.put(i, st)
}

func (h expiries) put(slot int, st *stand) {
	h[slot] = st
	st.slot = slot
}

// dead answers the claim that died first, if any has.
func (h expiries) dead(now int64) *claim {
	if len(h) == 0 || !h[0].claim.dead(now) {
		return nil
	}
	return h[0].claim
}

// next is the earliest expiry.
func (h expiries) next() int64 {
	if len(h) == 0 {
		return math.MaxInt64
	}
	return h[0].claim.expiry
}
