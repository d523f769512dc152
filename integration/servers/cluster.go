package servers

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// Cluster is three primaries with a replica each.
type Cluster struct {
	Nodes []*Redis // the three primaries, then their replicas, in the same order
	ids   []string
}

const (
	primaries = 3
	slots     = 16384
)

// StartCluster starts six processes, and returns when every node knows that the cluster
// is whole and every replica follows. The nodes are born knowing each other, so that
// nothing has to be negotiated; Redis itself waits two seconds before it serves.
func StartCluster() (*Cluster, error) {
	for tries := 1; ; tries++ {
		c, err := startCluster()
		if err == nil || tries == portTries || !errors.Is(err, errPortTaken) {
			return c, err
		}
	}
}

func startCluster() (_ *Cluster, err error) {
	c := &Cluster{}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	var buses []int
	for range 2 * primaries {
		bus, err := freePort()
		if err != nil {
			return nil, err
		}
		node, err := newRedis(RedisOptions{Args: []string{
			"--cluster-enabled", "yes", "--cluster-port", strconv.Itoa(bus), "--cluster-config-file", "nodes.conf",
			"--cluster-node-timeout", "1000", "--cluster-replica-validity-factor", "0",
		}})
		if err != nil {
			return nil, err
		}
		c.Nodes, buses, c.ids = append(c.Nodes, node), append(buses, bus), append(c.ids, nodeID())
	}
	for i, node := range c.Nodes {
		if err := os.WriteFile(filepath.Join(node.dir, "nodes.conf"), []byte(c.conf(i, buses)), 0o600); err != nil {
			return nil, err
		}
	}
	if err := c.each((*Redis).Start); err != nil {
		return nil, err
	}
	return c, c.each(whole)
}

func nodeID() string {
	id := make([]byte, 20)
	_, _ = rand.Read(id) // never fails
	return hex.EncodeToString(id)
}

// conf is what the node i knows of the cluster when it is born.
func (c *Cluster) conf(i int, buses []int) string {
	var b strings.Builder
	for n, node := range c.Nodes {
		flags, master, owned := "master", "-", ""
		if n < primaries {
			owned = fmt.Sprintf(" %d-%d", n*slots/primaries, (n+1)*slots/primaries-1)
		} else {
			flags, master = "slave", c.ids[n-primaries]
		}
		if n == i {
			flags = "myself," + flags
		}
		fmt.Fprintf(&b, "%s %s@%d %s %s 0 0 %d connected%s\n", c.ids[n], node.Addr, buses[n], flags, master, n%primaries+1, owned)
	}
	return b.String() + "vars currentEpoch 3 lastVoteEpoch 0\n"
}

// whole waits until a node says that all is well.
func whole(r *Redis) error {
	return await(r.Addr+" to find the cluster whole", func(ctx context.Context) (bool, error) {
		info, err := r.admin.ClusterInfo(ctx).Result()
		if err != nil || !strings.Contains(info, "cluster_state:ok") {
			return false, err
		}
		role, err := r.Info(ctx, "replication", "role")
		if err != nil || role == "master" {
			return err == nil, err
		}
		link, err := r.Info(ctx, "replication", "master_link_status")
		return link == "up", err
	})
}

// each does something with every node at once.
func (c *Cluster) each(do func(*Redis) error) error {
	errs := make([]error, len(c.Nodes))
	var all sync.WaitGroup
	for i, node := range c.Nodes {
		all.Go(func() { errs[i] = do(node) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Addrs are the addresses of all nodes.
func (c *Cluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, node := range c.Nodes {
		addrs[i] = node.Addr
	}
	return addrs
}

// URL is the address for clients.
func (c *Cluster) URL() string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") }

// Primaries are the nodes that are primaries now.
func (c *Cluster) Primaries(ctx context.Context) ([]*Redis, error) {
	var found []*Redis
	for _, node := range c.Nodes {
		role, err := node.Info(ctx, "replication", "role")
		if err != nil {
			return nil, err
		}
		if role == "master" {
			found = append(found, node)
		}
	}
	return found, nil
}

// Failover lets a replica take over from its living primary, and waits until all know.
func (c *Cluster) Failover(ctx context.Context, replica *Redis) error {
	if err := replica.admin.ClusterFailover(ctx).Err(); err != nil {
		return err
	}
	return await(replica.Addr+" to be primary", func(ctx context.Context) (bool, error) {
		for _, node := range c.Nodes {
			view, err := node.admin.ClusterNodes(ctx).Result()
			if err != nil || !isPrimary(view, c.id(replica)) {
				return false, err
			}
		}
		now, err := c.Primaries(ctx)
		return len(now) == primaries, err
	})
}

// isPrimary says whether a node's view of the cluster has another as a primary.
func isPrimary(view, id string) bool {
	for line := range strings.Lines(view) {
		if words := strings.Fields(line); len(words) > 2 && words[0] == id {
			return strings.Contains(words[2], "master")
		}
	}
	return false
}

// MoveSlot moves a slot with all its keys to another primary, key by key, as an
// operator does.
func (c *Cluster) MoveSlot(ctx context.Context, slot int, from, to *Redis, between func() error) error {
	source, target := c.id(from), c.id(to)
	for _, step := range []struct {
		node  *Redis
		words []any
	}{
		{to, []any{"CLUSTER", "SETSLOT", slot, "IMPORTING", source}},
		{from, []any{"CLUSTER", "SETSLOT", slot, "MIGRATING", target}},
	} {
		if _, err := step.node.Command(ctx, step.words...); err != nil {
			return err
		}
	}
	if err := moveKeys(ctx, slot, from, to, between); err != nil {
		return err
	}
	for _, node := range []*Redis{to, from} {
		if _, err := node.Command(ctx, "CLUSTER", "SETSLOT", slot, "NODE", target); err != nil {
			return err
		}
	}
	return nil
}

func moveKeys(ctx context.Context, slot int, from, to *Redis, between func() error) error {
	for {
		keys, err := from.admin.ClusterGetKeysInSlot(ctx, slot, 1).Result()
		if err != nil || len(keys) == 0 {
			return err
		}
		_, err = from.Command(ctx, "MIGRATE", loopback, to.Port, keys[0], 0, 5000)
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if err := between(); err != nil {
			return err
		}
	}
}

func (c *Cluster) id(node *Redis) string { return c.ids[slices.Index(c.Nodes, node)] }

// Close ends all six.
func (c *Cluster) Close() error { return c.each((*Redis).Close) }
