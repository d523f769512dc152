package redislease

import (
	"crypto/sha1" //nolint:gosec // Redis names scripts by it
	"embed"
	"encoding/hex"
	"strings"
)

//go:embed script/*.lua
var scriptFiles embed.FS

// flavour is what a server understands.
type flavour uint8

const (
	modern flavour = iota // Redis 7 and Valkey: script flags, SET with NX and GET
	old                   // Redis 6.2
	flavours
)

// script is one verb: its source and its name in the server's cache.
type script struct {
	name   string
	source [flavours]string
	sha    [flavours]string

	many *script // the one that does this verb for several calls at once; nil: none does
}

// scripts are all verbs.
type scripts struct {
	take, takes, join, hold, renew, give, gives, leave, end, lines, watch script
}

// newScripts reads the sources. Renewing and leaving pass a full server.
func newScripts() *scripts {
	const pass = "flags=allow-oom"
	s := &scripts{
		take:  newScript("take", ""),
		takes: newScript("takes", ""),
		join:  newScript("join", ""),
		hold:  newScript("hold", pass),
		renew: newScript("renew", pass),
		give:  newScript("give", pass),
		gives: newScript("gives", pass),
		leave: newScript("leave", pass),
		end:   newScript("end", pass),
		lines: newScript("lines", "flags=no-writes"),
		watch: newScript("watch", ""),
	}
	s.take.many, s.give.many = &s.takes, &s.gives
	return s
}

func newScript(name, flags string) script {
	s := script{name: name}
	body := strings.Replace(read(name), "--@line\n", read("line"), 1)
	s.source[modern] = strings.TrimRight("#!lua "+flags, " ") + "\n" + body
	s.source[old] = forOld(body)
	for f, source := range s.source {
		sum := sha1.Sum([]byte(source)) //nolint:gosec // Redis names scripts by it
		s.sha[f] = hex.EncodeToString(sum[:])
	}
	return s
}

func read(name string) string {
	data, err := scriptFiles.ReadFile("script/" + name + ".lua")
	if err != nil {
		return "" // the files are part of the program; a test sees that none is missing
	}
	return string(data)
}

// forOld leaves out the lines marked "--@7" and takes in those behind "--@6".
func forOld(body string) string {
	var out strings.Builder
	for line := range strings.Lines(body) {
		if strings.HasSuffix(strings.TrimSpace(line), "--@7") {
			continue
		}
		out.WriteString(strings.Replace(line, "--@6 ", "", 1))
	}
	return out.String()
}
