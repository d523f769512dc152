package drivertest

// readers: the read/write lock.
func readers() []Case {
	return []Case{
		{Name: "readers share, and a writer waits for all of them", needs: line | shared, run: writerWaitsForAll},
		{Name: "a reader behind a reader is nobody who waits", needs: line | shared, run: readerIsNotBehind},
		{Name: "a reader waits behind a waiting writer", needs: line | shared, run: readerBehindWriter},
		{Name: "the readers behind a writer that gives up hold at once", needs: line | shared, run: writerGivesUp},
		{Name: "the readers behind a writer that dies hold at once", needs: line | shared, run: writerDies},
		{Name: "one reader's renewals do not keep another alive", needs: line | shared, run: readersLiveAlone},
		{Name: "a mutex on the key of a read/write lock is a writer", needs: line | shared, run: mutexIsWriter},
	}
}

func writerWaitsForAll(b *bench) error {
	k := b.key()
	rs := b.crowd(3, k)
	for _, r := range rs {
		r.reads().join(holding)
	}
	w := b.client().claim(k).writes()
	w.join(waiting)
	rs[1].leave(left)
	w.renew(waiting)
	rs[0].leave(left)
	w.renew(waiting)
	rs[2].leave(left)
	w.renew(holding)
	b.heldBy(k, w)
	return b.result()
}

func readerIsNotBehind(b *bench) error {
	r, s, w := b.trio(b.key())
	r.reads().join(holding)
	s.reads().join(holding)
	b.check(!r.renew(holding).Behind, "both hold, but Behind is set")
	w.writes().join(waiting)
	b.check(r.renew(holding).Behind, "a writer waits, but Behind is not set")
	b.check(s.renew(holding).Behind, "a writer waits, but Behind is not set")
	return b.result()
}

func readerBehindWriter(b *bench) error {
	r, w, late := b.trio(b.key())
	r.reads().join(holding)
	w.writes().join(waiting)
	late.reads().join(waiting)
	r.renew(holding)
	late.renew(waiting)
	r.leave(left)
	w.renew(holding)
	late.renew(waiting)
	w.leave(left)
	late.renew(holding)
	return b.result()
}

func writerGivesUp(b *bench) error {
	k := b.key()
	r, w := b.pair(k)
	r.reads().join(holding)
	w.writes().join(waiting)
	late := b.crowd(3, k)
	for _, x := range late {
		x.reads().join(waiting)
	}
	w.leave(left)
	b.heldBy(k, r, late[0], late[1], late[2])
	return b.result()
}

func writerDies(b *bench) error {
	r, w, late := b.trio(b.key())
	r.reads().join(holding)
	w.writes().lives(2, 2).join(waiting)
	late.reads().join(waiting)
	b.sleep(3)
	late.renew(holding)
	b.heldBy(r.Keys[0], r, late)
	return b.result()
}

func readersLiveAlone(b *bench) error {
	r, s, w := b.trio(b.key())
	r.reads().lives(3, 3).join(holding)
	s.reads().lives(3, 3).join(holding)
	w.writes().join(waiting)
	b.sleep(2)
	s.renew(holding)
	b.sleep(2)
	s.renew(holding)
	r.renew(gone)
	s.leave(left)
	w.renew(holding)
	return b.result()
}

func mutexIsWriter(b *bench) error {
	r, m, late := b.trio(b.key())
	r.reads().join(holding)
	m.join(waiting)
	late.reads().join(waiting)
	r.leave(left)
	m.renew(holding)
	late.renew(waiting)
	m.leave(left)
	late.renew(holding)
	return b.result()
}
