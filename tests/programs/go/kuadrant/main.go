// Answers questions about AuthPolicies with kuadrant-operator's own code: one JSON object on a line for each on
// standard input. A question is the objects of a cluster, with the status of Gateways and routes as their controller
// would write it; an answer is the effective policy of every path and the conditions of every policy.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"sync"

	kuadrantv1 "github.com/kuadrant/kuadrant-operator/api/v1"
	controllers "github.com/kuadrant/kuadrant-operator/internal/controller"
)

type question struct {
	Objects []json.RawMessage `json:"objects"`
}

type answer struct {
	Paths    map[string]map[string]rule `json:"paths"`    // by the path, then by the key of the rule
	Policies map[string][]condition     `json:"policies"` // by namespace/name
	Error    string                     `json:"error,omitempty"`
}

type rule struct {
	Value  any    `json:"value"`
	Source string `json:"source"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

func main() {
	out := json.NewEncoder(os.Stdout)
	out.SetEscapeHTML(false)
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
		given, err := answerTo(asked)
		if err != nil {
			given = answer{Error: err.Error()}
		}
		if err := out.Encode(given); err != nil {
			panic(err)
		}
	}
}

// answerTo goes the way of the operator's workflow: validation, effective policies, then, in a cluster where each of
// them has its AuthConfig, the status.
func answerTo(asked question) (answer, error) {
	given := answer{Paths: map[string]map[string]rule{}, Policies: map[string][]condition{}}
	seen, err := readCluster(asked.Objects)
	if err != nil {
		return given, err
	}
	ctx, state := context.Background(), &sync.Map{}
	topology, err := seen.topology(nil)
	if err != nil {
		return given, err
	}
	if err := validator().Validate(ctx, nil, topology, nil, state); err != nil {
		return given, err
	}
	effective := controllers.CalculateEffectiveAuthPolicies(ctx, topology, seen.kuadrant, state)
	state.Store(controllers.StateEffectiveAuthPolicies, effective)
	for path, policy := range effective {
		given.Paths[path] = rulesOf(policy.Spec)
	}
	if topology, err = seen.topology(effective); err != nil {
		return given, err
	}
	if err := statusUpdater().UpdateStatus(ctx, nil, topology, nil, state); err != nil {
		return given, err
	}
	for _, policy := range seen.policies {
		given.Policies[policy.Namespace+"/"+policy.Name] = conditionsOf(policy)
	}
	return given, nil
}

func rulesOf(policy kuadrantv1.AuthPolicy) map[string]rule {
	rules := map[string]rule{}
	for key, held := range policy.Rules() {
		rules[key] = rule{Value: held.GetSpec(), Source: held.GetSource()}
	}
	return rules
}

func conditionsOf(policy *kuadrantv1.AuthPolicy) []condition {
	conditions := []condition{}
	for _, held := range policy.Status.Conditions {
		conditions = append(conditions, condition{held.Type, string(held.Status), held.Reason, held.Message})
	}
	return conditions
}
