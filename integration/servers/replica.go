package servers

import (
	"context"
	"errors"
	"strconv"
)

// Pair is a primary and its replica.
type Pair struct{ Primary, Replica *Redis }

// StartPair starts a primary and a replica that follows it.
func StartPair(opts RedisOptions) (*Pair, error) {
	primary, err := StartRedis(opts)
	if err != nil {
		return nil, err
	}
	replica, err := StartRedis(opts)
	if err != nil {
		return nil, errors.Join(err, primary.Close())
	}
	p := &Pair{primary, replica}
	if err := p.Follow(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

// Follow makes the replica follow the primary, and waits until it does.
func (p *Pair) Follow() error {
	ctx := context.Background()
	if _, err := p.Replica.Command(ctx, "REPLICAOF", loopback, strconv.Itoa(p.Primary.Port)); err != nil {
		return err
	}
	return await("the replica to follow", func(ctx context.Context) (bool, error) {
		status, err := p.Replica.Info(ctx, "replication", "master_link_status")
		return status == "up", err
	})
}

// CutOff lets the replica follow nobody's port, without telling it that it is primary
// now. A stopped replica would not do: what was sent to it is applied when it goes on.
func (p *Pair) CutOff() error {
	_, err := p.Replica.Command(context.Background(), "REPLICAOF", loopback, "1")
	return err
}

// Promote makes the replica a primary.
func (p *Pair) Promote() error {
	_, err := p.Replica.Command(context.Background(), "REPLICAOF", "NO", "ONE")
	return err
}

// Close ends both.
func (p *Pair) Close() error { return errors.Join(p.Primary.Close(), p.Replica.Close()) }
