package redislease

import (
	"context"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/hasp-dev/hasp/driver"
)

// mostTogether is how many calls one command carries: a script's items are quick, and a
// step must not be long.
const mostTogether = 32

// How a pipeline carries scripts.
const (
	byName    = iota // by name: the server knows them
	onceWhole        // the first command of each script with its source
	allWhole         // every command with its source
)

// post is a command on its way: of one call, or of several that one script does.
type post struct {
	script *script
	calls  []*call
	cmd    *redis.Cmd
}

// together puts calls that one command can do into one, where a server has all the keys.
func together(calls []*call, apart bool) []post {
	posts := make([]post, 0, min(len(calls), 8))
	for i, c := range calls {
		if c.many && !apart {
			at := slices.IndexFunc(posts, func(p post) bool { return p.calls[0].script == c.script && len(p.calls) < mostTogether })
			if at >= 0 {
				posts[at].calls, posts[at].script = append(posts[at].calls, c), c.script.many
				continue
			}
		}
		posts = append(posts, post{script: c.script, calls: calls[i : i+1 : i+1]})
	}
	return posts
}

// make makes the post's command, with the source of the script or by name. Of each call
// the script of many takes what that of one takes.
func (p *post) make(ctx context.Context, f flavour, whole bool) {
	first := p.calls[0]
	args := make([]any, 3, 3+len(p.calls)*len(first.args))
	args[0], args[1], args[2] = "evalsha", p.script.sha[f], first.keys*len(p.calls)
	if whole {
		args[0], args[1] = "eval", p.script.source[f]
	}
	for _, c := range p.calls {
		args = append(args, c.args[:c.keys]...)
	}
	for _, c := range p.calls {
		args = append(args, c.args[c.keys:]...)
	}
	p.cmd = redis.NewCmd(ctx, args...)
	p.cmd.SetFirstKeyPos(3)
}

// deliver gives each call its part of the answer.
func (p *post) deliver() {
	err := p.cmd.Err()
	if len(p.calls) == 1 || err != nil {
		for _, c := range p.calls {
			c.reply, c.err = p.cmd.Val(), err
		}
		return
	}
	list, _ := p.cmd.Val().([]any)
	for i, c := range p.calls {
		c.reply, c.err = nil, nil
		if len(list) != len(p.calls) {
			c.err = fmt.Errorf("redislease: %w: an answer of the script was not understood", driver.ErrUnavailable)
		} else if c.err, _ = list[i].(error); c.err == nil {
			c.reply = list[i]
		}
	}
}

// refused reports whether the server has done nothing of the command: because of one of
// its keys (a right, a slot), perhaps.
func (p *post) refused() bool {
	_, no := refusals[code(p.cmd.Err())]
	return no
}

// exchange sends calls, until each has an answer. Scripts the server does not know are sent
// once more, each once whole; where it has forgotten them again by then, each command
// whole. What is refused as one command is sent again call by call.
func (n *node) exchange(ctx context.Context, rdb runner, f flavour, calls []*call) {
	left, apart := calls, n.finder != nil
	for how := byName; len(left) > 0; {
		posts := together(left, apart)
		n.send(ctx, rdb, f, posts, how)
		var again []*call
		unknown := false
		for i := range posts {
			p := &posts[i]
			switch {
			case how != allWhole && code(p.cmd.Err()) == "NOSCRIPT":
				again, unknown = append(again, p.calls...), true
			case len(p.calls) > 1 && p.refused():
				again, apart = append(again, p.calls...), true
			default:
				p.deliver()
			}
		}
		if left = again; unknown {
			how++
		}
	}
}

// send is one pipeline. Each command has its error.
func (n *node) send(ctx context.Context, rdb runner, f flavour, posts []post, how int) {
	counts := false
	for i := range posts {
		p := &posts[i]
		p.make(ctx, f, how == allWhole || how == onceWhole && !slices.ContainsFunc(posts[:i], func(before post) bool {
			return before.script == p.script
		}))
		counts = counts || p.calls[0].counts
	}
	if counts && n.d.opts.Replicas > 0 {
		n.confirmed(ctx, rdb, posts)
		return
	}
	if len(posts) == 1 {
		_ = rdb.Process(ctx, posts[0].cmd)
		return
	}
	pipe := rdb.Pipeline()
	for i := range posts {
		_ = pipe.Process(ctx, posts[i].cmd)
	}
	_, _ = pipe.Exec(ctx)
}

// confirmed sends the pipeline and has the same connection wait for the replicas.
func (n *node) confirmed(ctx context.Context, rdb runner, posts []post) {
	pipe := rdb.Pipeline()
	for i := range posts {
		_ = pipe.Process(ctx, posts[i].cmd)
	}
	wait := redis.NewIntCmd(ctx, "wait", n.d.opts.Replicas, n.d.opts.ReplicaTimeout.Milliseconds())
	_ = pipe.Process(ctx, wait)
	_, _ = pipe.Exec(ctx)
	if wait.Err() == nil && wait.Val() >= int64(n.d.opts.Replicas) {
		return
	}
	err := wait.Err()
	if err == nil {
		err = tooFewError{got: wait.Val(), want: n.d.opts.Replicas}
	}
	for i := range posts {
		if posts[i].calls[0].counts && posts[i].cmd.Err() == nil {
			posts[i].cmd.SetErr(unavailable(err))
		}
	}
}
