package open

import (
	"regexp"
	"strings"
)

// envPrefix begins the variables of settings.
const envPrefix = "HASP_"

// meant says whether somebody has set a variable for hasp. An empty one says nothing, and
// beside a service named hasp-redis Kubernetes gives HASP_REDIS_PORT=tcp://10.0.0.1:6379 to
// every container.
func meant(name, value string) bool {
	if strings.HasSuffix(name, "_PORT") && regexp.MustCompile(`^(tcp|udp|sctp)://`).MatchString(value) {
		return false
	}
	return value != ""
}

// checkEnvironment refuses variables whose name is almost one of the settings': passed over,
// they would leave the locks somewhere else than was meant. Any other is not hasp's matter:
// the command has some, Kubernetes makes some for its services, and programs have their own.
func (c *configuration) checkEnvironment(environ []string) {
	for _, each := range environ {
		name, value, _ := strings.Cut(each, "=")
		if !strings.HasPrefix(name, envPrefix) || !meant(name, value) {
			continue
		}
		if known := almost(name); known != "" {
			c.wrong("the variable %s is none of those that go over the file; did you mean %s?", name, known)
		}
	}
}

// almost finds the variable that a name is a misspelling of; "" where it is one, or of none.
func almost(name string) string {
	best, least := "", len(name)
	for _, s := range settings() {
		if s.env == name {
			return ""
		}
		if d, ok := misspelt(strings.ToUpper(name), s.env); ok && d < least {
			best, least = s.env, d
		}
	}
	return best
}

// misspelt says whether two names differ in nothing but underscores, or in each word by
// no more than a slip of the hand, and by how much they differ in all.
func misspelt(name, known string) (int, bool) {
	if strings.ReplaceAll(name, "_", "") == strings.ReplaceAll(known, "_", "") {
		return 0, true
	}
	words, want := strings.Split(name, "_"), strings.Split(known, "_")
	if len(words) != len(want) {
		return 0, false
	}
	all := 0
	for i := range words {
		slip := 1
		if len(want[i]) > 4 { // two letters that changed places count two
			slip = 2
		}
		d := distance(words[i], want[i])
		if d > slip {
			return 0, false
		}
		all += d
	}
	return all, true
}
