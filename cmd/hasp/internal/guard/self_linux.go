package guard

// Self is the file of this program, also after it was replaced or removed.
func Self() (string, error) { return "/proc/self/exe", nil }
