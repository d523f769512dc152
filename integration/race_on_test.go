//go:build race

package integration_test

// underRace says that the race detector makes everything several times slower.
const underRace = true
