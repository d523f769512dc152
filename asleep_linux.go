package hasp

import (
	"syscall"
	"time"
	"unsafe"
)

// Clock numbers of clock_gettime(2).
const (
	clockMonotonic = 1
	clockBoottime  = 7
)

// asleep is how long the machine has been suspended since it booted: the difference
// of the clock that counts suspended time and the one that does not. The two cannot
// be read at once, so a pair that took long is read again.
func asleep() time.Duration {
	var boot, before time.Duration
	for range 3 {
		before = readClock(clockMonotonic)
		boot = readClock(clockBoottime)
		if readClock(clockMonotonic)-before < time.Millisecond {
			break
		}
	}
	if boot == 0 || before == 0 {
		return 0
	}
	return max(0, boot-before)
}

func readClock(number uintptr) time.Duration {
	var ts syscall.Timespec
	_, _, errno := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, number, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0
	}
	return time.Duration(ts.Nano())
}
