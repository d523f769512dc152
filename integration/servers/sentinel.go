package servers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/integration/process"
)

// MasterName is what the sentinels call the primary.
const MasterName = "locks"

// Sentinels are a pair watched by three sentinels, which promote the replica half a
// second after the primary fell silent.
type Sentinels struct {
	Pair
	Addrs []string // of the sentinels

	dir   string
	procs []*process.Process
	admin []*redis.Client
}

// StartSentinels starts five processes, and returns when the sentinels know each other
// and the replica.
func StartSentinels() (_ *Sentinels, err error) {
	pair, err := StartPair(RedisOptions{})
	if err != nil {
		return nil, err
	}
	s := &Sentinels{Pair: *pair}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.Close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "hasp-sentinel-"); err != nil {
		return nil, err
	}
	for range 3 {
		if err := s.startOne(); err != nil {
			return nil, err
		}
	}
	return s, await("the sentinels to know each other", func(ctx context.Context) (bool, error) {
		for _, c := range s.admin {
			master := redis.NewMapStringStringCmd(ctx, "SENTINEL", "MASTER", MasterName)
			if err := c.Process(ctx, master); err != nil {
				return false, err
			}
			if m := master.Val(); m["num-other-sentinels"] != "2" || m["num-slaves"] != "1" {
				return false, fmt.Errorf("a sentinel knows %s others, %s replicas", m["num-other-sentinels"], m["num-slaves"])
			}
		}
		return true, nil
	})
}

func (s *Sentinels) startOne() error {
	path, err := redisBinary()
	if err != nil {
		return err
	}
	for range portTries {
		port, err := freePort()
		if err != nil {
			return err
		}
		conf := filepath.Join(s.dir, fmt.Sprintf("sentinel-%d.conf", port))
		text := fmt.Sprintf(`port %d
bind %s
dir %s
sentinel monitor %s %s %d 2
sentinel down-after-milliseconds %[4]s 500
sentinel failover-timeout %[4]s 3000
`, port, loopback, s.dir, MasterName, loopback, s.Primary.Port)
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			return err
		}
		p, err := process.Start(exec.Command(path, conf, "--sentinel"), nil)
		if err != nil {
			return err
		}
		if err := p.Await("+monitor master " + MasterName); err != nil {
			p.Kill()
			if strings.Contains(p.Output(), "Address already in use") {
				continue
			}
			return err
		}
		addr := fmt.Sprintf("%s:%d", loopback, port)
		admin := adminClient(addr)
		s.procs, s.admin, s.Addrs = append(s.procs, p), append(s.admin, admin), append(s.Addrs, addr)
		return confirm(admin, p.PID())
	}
	return errPortTaken
}

// AwaitPrimary waits until a majority of the sentinels name that server as primary.
func (s *Sentinels) AwaitPrimary(r *Redis) error {
	return await("the sentinels to name "+r.Addr, func(ctx context.Context) (bool, error) {
		agree := 0
		for _, c := range s.admin {
			at := redis.NewStringSliceCmd(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", MasterName)
			if err := c.Process(ctx, at); err != nil {
				return false, err
			}
			if strings.Join(at.Val(), ":") == r.Addr {
				agree++
			}
		}
		return agree >= 2, nil
	})
}

// URL is the address for clients.
func (s *Sentinels) URL() string {
	return "redis+sentinel://" + strings.Join(s.Addrs, ",") + "/" + MasterName
}

// Close ends all five.
func (s *Sentinels) Close() error {
	for i, p := range s.procs {
		p.Kill()
		_ = s.admin[i].Close()
	}
	return errors.Join(s.Pair.Close(), os.RemoveAll(s.dir))
}
