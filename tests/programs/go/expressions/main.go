// Answers questions about expressions as Authorino answers them: one JSON object on a line for each on standard input.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"

	"github.com/kuadrant/authorino/pkg/expressions/cel"
	authorinojson "github.com/kuadrant/authorino/pkg/json"
	"github.com/open-policy-agent/opa/v1/ast"
	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/tidwall/gjson"
)

type question struct {
	Select   *string         `json:"select"`
	Value    *string         `json:"value"`
	CEL      *string         `json:"cel"`
	Rego     *string         `json:"rego"`
	Query    string          `json:"query"`
	Document json.RawMessage `json:"document"`
}

type answer = map[string]any

func main() {
	in := bufio.NewReaderSize(os.Stdin, 1<<20)
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var asked question
		if err := json.Unmarshal(line, &asked); err != nil {
			panic(err)
		}
		if err := out.Encode(answered(asked)); err != nil { // a number such as +5, which OPA makes and JSON has not
			if err := out.Encode(answer{"error": "cannot be written"}); err != nil {
				panic(err)
			}
		}
	}
}

func answered(asked question) (found answer) {
	defer func() {
		if recover() != nil {
			found = answer{"error": "panic"}
		}
	}()
	document := string(asked.Document)
	switch {
	case asked.Select != nil:
		result := gjson.Get(document, *asked.Select)
		texts := []string{}
		for _, item := range result.Array() {
			texts = append(texts, item.String())
		}
		return answer{"exists": result.Exists(), "text": result.String(), "raw": result.Raw, "texts": texts}
	case asked.Value != nil:
		value := authorinojson.JSONValue{Pattern: *asked.Value}
		resolved, _ := value.ResolveFor(document)
		text, err := authorinojson.StringifyJSON(resolved)
		if err != nil {
			return answer{"error": err.Error()}
		}
		return answer{"value": resolved, "text": text}
	case asked.CEL != nil:
		return ofCEL(*asked.CEL, document)
	default:
		return ofRego(*asked.Rego, asked.Query, asked.Document)
	}
}

func ofCEL(text, document string) answer {
	expression, err := cel.NewExpression(text)
	if err != nil {
		return answer{"refused": err.Error()}
	}
	_, predicate := cel.NewPredicate(text)
	value, err := expression.ResolveFor(document)
	if err != nil {
		return answer{"error": err.Error(), "predicate": predicate == nil}
	}
	return answer{"value": value, "predicate": predicate == nil}
}

func ofRego(module, query string, document json.RawMessage) answer {
	parsed, err := ast.ParseModuleWithOpts("module.rego", module, ast.ParserOptions{RegoVersion: ast.RegoV0})
	if err != nil {
		return answer{"refused": err.Error()}
	}
	ctx := context.Background()
	prepared, err := rego.New(rego.Query(query), rego.ParsedModule(parsed), rego.SetRegoVersion(ast.RegoV0)).PrepareForEval(ctx)
	if err != nil {
		return answer{"refused": err.Error()}
	}
	var input any
	if err := json.Unmarshal(document, &input); err != nil {
		panic(err)
	}
	results, err := prepared.Eval(ctx, rego.EvalInput(input))
	if err != nil {
		return answer{"error": err.Error()}
	}
	if len(results) == 0 {
		return answer{"undefined": true}
	}
	return answer{"bindings": results[0].Bindings}
}
