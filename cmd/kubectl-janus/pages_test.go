package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"janus.io/janus/test/harness"
)

// TestThePageIsAsItIs runs docs/kubectl-janus.md. The test binary is found as kubectl-janus.
func TestThePageIsAsItIs(t *testing.T) {
	e := harness.New(t)
	policy := harness.FastPolicy
	policy.RevisionHistoryLimit = 10
	e.Start(harness.WithPolicy(policy))
	shell := e.Shell()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, shell.Provide("kubectl-janus", self))
	e.TypePage(shell, "kubectl-janus.md")
}

// TestThePageAboutContentIsAsItIs runs docs/content.md.
func TestThePageAboutContentIsAsItIs(t *testing.T) {
	e := harness.New(t)
	e.Start()
	shell := e.Shell()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, shell.Provide("kubectl-janus", self))
	e.TypePage(shell, "content.md")
}

// TestThePageAboutApprovalIsAsItIs runs docs/approval.md.
func TestThePageAboutApprovalIsAsItIs(t *testing.T) {
	e := harness.New(t)
	e.GuardApprovals()
	e.Start()
	shell := e.Shell()
	self, err := os.Executable()
	require.NoError(t, err)
	require.NoError(t, shell.Provide("kubectl-janus", self))
	e.TypePage(shell, "approval.md")
	e.NothingLeft("release")
}

// TestTheReferenceIsThatOfTheCommands compares docs/kubectl-janus-reference.md with what the
// commands say of themselves; -update writes it.
func TestTheReferenceIsThatOfTheCommands(t *testing.T) {
	root := newRoot(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	root.InitDefaultHelpCmd()
	var b strings.Builder
	b.WriteString("# kubectl janus: commands and flags\n\nWritten by `go test ./cmd/kubectl-janus -run TestTheReference -update`. " +
		"See [kubectl janus](kubectl-janus.md) for how to\nuse it.\n")
	for _, c := range root.Commands() {
		reference(&b, c)
	}
	b.WriteString("\n## Flags of all commands\n\n```text\n" + noHome(root.PersistentFlags().FlagUsages()) + "```\n")
	file := filepath.Join("..", "..", "docs", "kubectl-janus-reference.md")
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(b.String()), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	assert.Equal(t, string(want), b.String(), "run go test ./cmd/kubectl-janus -run TestTheReference -update")
}

// TestTheExamplesOfTheHelpAreCommands parses each: its command and its flags exist.
func TestTheExamplesOfTheHelpAreCommands(t *testing.T) {
	all := func() *cobra.Command {
		return newRoot(genericiooptions.IOStreams{In: &bytes.Buffer{}, Out: &bytes.Buffer{}, ErrOut: &bytes.Buffer{}})
	}
	parsed := 0
	var examples func(c *cobra.Command)
	examples = func(c *cobra.Command) {
		for line := range strings.Lines(c.Example) {
			_, call, found := strings.Cut(line, "kubectl janus ")
			require.True(t, found, line)
			call, _, _ = strings.Cut(call, " > ")
			call, _, _ = strings.Cut(call, " | ")
			of, args, err := all().Find(strings.Fields(call))
			require.NoError(t, err, line)
			assert.Equal(t, c.CommandPath(), of.CommandPath(), line)
			require.NoError(t, of.ParseFlags(args), line)
			require.NoError(t, of.ValidateArgs(of.Flags().Args()), line)
			parsed++
		}
		for _, sub := range c.Commands() {
			examples(sub)
		}
	}
	examples(all())
	assert.Positive(t, parsed)
}

func reference(b *strings.Builder, c *cobra.Command) {
	if c.Name() == "help" || c.Name() == "completion" {
		return
	}
	text := c.Long
	if text == "" {
		text = c.Short + "."
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n", c.CommandPath(), text)
	if c.Runnable() && !isGroup(c) {
		fmt.Fprintf(b, "\n```text\n%s\n", c.UseLine())
		if flags := c.NonInheritedFlags().FlagUsages(); flags != "" {
			b.WriteString("\n" + flags)
		}
		b.WriteString("```\n")
	}
	if c.Example != "" {
		fmt.Fprintf(b, "\n```sh\n%s\n```\n", strings.ReplaceAll(strings.TrimSpace(c.Example), "\n  ", "\n"))
	}
	for _, sub := range c.Commands() {
		reference(b, sub)
	}
}

// noHome takes a directory that differs from one machine to the next out of a default.
func noHome(text string) string {
	home, err := os.UserHomeDir()
	if err != nil {
		return text
	}
	return strings.ReplaceAll(text, home, "$HOME")
}
