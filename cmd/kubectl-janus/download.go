package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// isURL reports whether a name of manifests is an address that they are downloaded from.
func isURL(name string) bool {
	return strings.HasPrefix(name, "http://") || strings.HasPrefix(name, "https://")
}

// download reads what is at an address. Like kubectl it asks again, twice at most, if there is no
// answer or a server is in trouble.
func download(ctx context.Context, address string) ([]byte, error) {
	const attempts, pause = 3, time.Second
	for n := 1; ; n++ {
		data, again, err := get(ctx, address)
		if err == nil || !again || n == attempts {
			return data, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(pause):
		}
	}
}

// get asks once, and reports whether another attempt may be answered better.
func get(ctx context.Context, address string) (data []byte, again bool, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, false, fmt.Errorf("read the manifests: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, true, fmt.Errorf("read the manifests: %w", err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		return nil, answer.StatusCode >= http.StatusInternalServerError, fmt.Errorf("read the manifests: GET %s: the server answered %s", request.URL.Redacted(), answer.Status)
	}
	if data, err = io.ReadAll(answer.Body); err != nil {
		return nil, true, fmt.Errorf("read the manifests: GET %s: %w", request.URL.Redacted(), err)
	}
	return data, false, nil
}
