package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"
	"sigs.k8s.io/yaml"
)

// output is the flag -o of what prints text for people otherwise: json, yaml, or empty for text.
type output string

// addTo adds the flag.
func (o *output) addTo(cmd *cobra.Command) {
	cmd.Flags().VarP(o, "output", "o", "print json or yaml in place of text")
	completeOf(cmd, "output", "json", "yaml")
}

// String implements pflag.Value.
func (o *output) String() string { return string(*o) }

// Type implements pflag.Value.
func (o *output) Type() string { return "format" }

// Set implements pflag.Value.
func (o *output) Set(text string) error {
	if text != "json" && text != "yaml" {
		return errors.New("want json or yaml")
	}
	*o = output(text)
	return nil
}

// text reports whether text for people is wanted.
func (o *output) text() bool { return *o == "" }

// printer prints an object; nil if text is wanted.
func (o *output) printer() printers.ResourcePrinter {
	switch *o {
	case "json":
		return &printers.JSONPrinter{}
	case "yaml":
		return &printers.YAMLPrinter{}
	default:
		return nil
	}
}

// printData prints what is no object of the cluster.
func (s *session) printData(o output, v any) error {
	text, err := json.MarshalIndent(v, "", "    ")
	if err == nil && o == "yaml" {
		text, err = yaml.JSONToYAML(text)
	} else {
		text = append(text, '\n')
	}
	if err != nil {
		return fmt.Errorf("encode the output: %w", err)
	}
	if _, err := s.Out.Write(text); err != nil {
		return fmt.Errorf("print the output: %w", err)
	}
	return nil
}
