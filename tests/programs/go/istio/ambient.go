package main

import (
	"encoding/json"

	"istio.io/istio/pilot/pkg/serviceregistry/ambient"
)

// ambientState is what istiod sends to ztunnels: policies, which of them select a workload, and who has a waypoint.
type ambientState struct {
	Policies  []json.RawMessage        `json:"policies"`
	Workloads map[string]ambientTarget `json:"workloads"` // by namespace/name
	Services  map[string]ambientTarget `json:"services"`
}

type ambientTarget struct {
	Policies []string        `json:"policies"`
	Waypoint json.RawMessage `json:"waypoint,omitempty"`
}

func readAmbient(index ambient.Index) *ambientState {
	state := &ambientState{Workloads: map[string]ambientTarget{}, Services: map[string]ambientTarget{}}
	for _, policy := range index.Policies(nil) {
		if policy.Authorization != nil {
			state.Policies = append(state.Policies, encode(policy.Authorization))
		}
	}
	addresses, _ := index.AddressInformation(nil)
	for _, address := range addresses {
		if workload := address.GetWorkload(); workload != nil {
			target := ambientTarget{Policies: workload.AuthorizationPolicies}
			if workload.Waypoint != nil {
				target.Waypoint = encode(workload.Waypoint)
			}
			state.Workloads[workload.Namespace+"/"+workload.Name] = target
		}
		if service := address.GetService(); service != nil {
			target := ambientTarget{}
			if service.Waypoint != nil {
				target.Waypoint = encode(service.Waypoint)
			}
			state.Services[service.Namespace+"/"+service.Name] = target
		}
	}
	return state
}
