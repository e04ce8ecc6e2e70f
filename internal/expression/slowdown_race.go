//go:build race

package expression

// slowdown is how much slower evaluations are with the race detector.
const slowdown = 20
