// Package ui has no code, only a test: it opens the page of internal/ui in Chromium, with real
// Transactions behind it, or with made-up ones where the browser alone matters, and makes the
// pictures of it in docs.
//
// It is a module of its own, because it needs a client of the browser's protocol, and Janus
// needs none.
package ui
