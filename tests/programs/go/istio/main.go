// Answers questions about Istio with istiod's own code: one JSON object on a line for each on standard input.
package main

import (
	"bufio"
	"encoding/json"
	"os"

	"istio.io/istio/pkg/log"
)

// question is a cluster: what is in it, which policies are to be validated, and whose configuration is wanted.
type question struct {
	Validate   []json.RawMessage `json:"validate"`
	Kubernetes []json.RawMessage `json:"kubernetes"`
	Istio      []json.RawMessage `json:"istio"`
	Mesh       json.RawMessage   `json:"mesh"`
	Proxies    []proxy           `json:"proxies"`
	Callers    []proxy           `json:"callers"` // whose ways to others are wanted
}

type answer struct {
	Rejections map[string][]string         `json:"rejections"` // by Kind/namespace/name
	Warnings   map[string][]string         `json:"warnings"`
	Proxies    map[string]configuration    `json:"proxies"` // by namespace/name
	Callers    map[string]map[string][]hop `json:"callers"` // by namespace/name, then by cluster
	Ambient    *ambientState               `json:"ambient,omitempty"`
	Error      string                      `json:"error,omitempty"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	quiet()
	definitions, err := readDefinitions()
	if err != nil {
		panic(err)
	}
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(answerTo(asked, definitions)); err != nil {
			panic(err)
		}
	}
}

func answerTo(asked question, definitions *definitions) answer {
	given := answer{
		Rejections: map[string][]string{},
		Warnings:   map[string][]string{},
		Proxies:    map[string]configuration{},
		Callers:    map[string]map[string][]hop{},
	}
	for _, document := range asked.Validate {
		definitions.validate(document, &given)
	}
	if len(asked.Proxies) > 0 || len(asked.Kubernetes) > 0 {
		if err := configure(asked, &given); err != nil {
			given.Error = err.Error()
		}
	}
	return given
}

// quiet keeps istiod's log off standard output, which is for answers.
func quiet() {
	options := log.DefaultOptions()
	options.OutputPaths = []string{"stderr"}
	options.SetDefaultOutputLevel("all", log.ErrorLevel)
	if err := log.Configure(options); err != nil {
		panic(err)
	}
}
