//go:build unix && !aix && !solaris

package sqlitelease

import (
	"os"
	"strings"
	"syscall"
)

// lockAlone takes the lock of a file nobody else may have, unless somebody has it.
func lockAlone(f *os.File) bool { return flock(f, syscall.LOCK_EX) }

// lockShared takes the lock together with others that only look.
func lockShared(f *os.File) bool { return flock(f, syscall.LOCK_SH) }

func flock(f *os.File, how int) bool {
	for {
		switch err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB); err {
		case nil:
			return true
		case syscall.EINTR:
		default:
			return false
		}
	}
}

// leak keeps the lock of a file for as long as the process runs, whoever closes f.
func leak(f *os.File) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if fd, err := syscall.Dup(int(f.Fd())); err == nil {
		syscall.CloseOnExec(fd)
	}
}

// bootID names the run of the kernel this process lives in; "": unknown.
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
