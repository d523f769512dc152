package open_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hasp-dev/hasp/driver"
	"github.com/hasp-dev/hasp/open"
)

func TestRS7_AMisspeltVariableIsRefusedWithTheNameThatWasMeant(t *testing.T) {
	path := write(t, "a.toml", "[redis]\nhost = \"cache\"\n")
	for name, meant := range map[string]string{
		"HASP_URI":                    "HASP_URL",
		"HASP_PERFIX":                 "HASP_PREFIX",
		"HASP_TLL":                    "HASP_TTL",
		"HASP_WAITS":                  "HASP_WAIT",
		"HASP_wait":                   "HASP_WAIT",
		"HASP_REDIS_HOSTS":            "HASP_REDIS_HOST",
		"HASP_RDEIS_PORT":             "HASP_REDIS_PORT",
		"HASP_REDISHOST":              "HASP_REDIS_HOST",
		"HASP_REDIS_POOLSIZE":         "HASP_REDIS_POOL_SIZE",
		"HASP_REDIS_PASSWROD":         "HASP_REDIS_PASSWORD",
		"HASP_SIMBA_REDIS_TRANSITOIN": "HASP_SIMBA_REDIS_TRANSITION",
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "s3cret")
			_, err := open.File(path, nil)
			if !errors.Is(err, driver.ErrInvalid) || !strings.Contains(err.Error(), name+" is none") ||
				!strings.Contains(err.Error(), "did you mean "+meant+"?") || strings.Contains(err.Error(), "s3cret") {
				t.Errorf("%v, want %s", err, meant)
			}
		})
	}
}

func TestAURLOfTheEnvironmentIsNeverPassedOver(t *testing.T) {
	path := write(t, "a.toml", "url = \"redis://cache\"\n")
	t.Setenv("HASP_URL", "tcp://cache:6379")
	if _, err := open.File(path, nil); !errors.Is(err, driver.ErrInvalid) {
		t.Errorf("%v", err)
	}
}

// What the command, Kubernetes and other programs set is not in the way.
func TestVariablesThatAreNotOfSettingsAreLeftAlone(t *testing.T) { //nolint:paralleltest // it sets the environment
	path := write(t, "a.toml", "[redis]\nhost = \"cache\"\nport = 6380\n")
	for name, value := range map[string]string{
		"HASP_KEY": "k", "HASP_KEYS": "[]", "HASP_TOKEN": "1", "HASP_TICK": "now", "HASP_REQUIRE_URL": "1",
		"HASP_REDIS_SERVER": "valkey-server", "HASP_LOG": "debug", "HASP_TLL": "",
		// A service named hasp-redis, and one named hasp.
		"HASP_REDIS_SERVICE_HOST": "10.0.0.1", "HASP_REDIS_SERVICE_PORT": "6379", "HASP_REDIS_SERVICE_PORT_REDIS": "6379",
		"HASP_REDIS_PORT": "tcp://10.0.0.1:6379", "HASP_REDIS_PORT_6379_TCP": "tcp://10.0.0.1:6379",
		"HASP_REDIS_PORT_6379_TCP_PROTO": "tcp", "HASP_REDIS_PORT_6379_TCP_PORT": "6379", "HASP_REDIS_PORT_6379_TCP_ADDR": "10.0.0.1",
		"HASP_PORT": "tcp://10.0.0.2:80", "HASP_SERVICE_HOST": "10.0.0.2", "HASP_SERVICE_PORT": "80",
		"HASP_PORT_80_TCP": "tcp://10.0.0.2:80", "HASP_PORT_80_TCP_ADDR": "10.0.0.2",
	} {
		t.Setenv(name, value)
	}
	if got := redisOptions(t, path).Addrs; len(got) != 1 || got[0] != "cache:6380" {
		t.Errorf("the Redis is %q, want cache:6380 as the file says", got)
	}
	file(t, path)
}
