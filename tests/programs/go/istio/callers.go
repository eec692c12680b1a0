package main

import (
	"istio.io/istio/pilot/pkg/networking/util"
	"istio.io/istio/pilot/test/xds"
)

// hop is where the proxy of a caller leads a connection; through a tunnel, its identity is seen there.
type hop struct {
	Address  string `json:"address"`
	IsTunnel bool   `json:"isTunnel"`
}

// hopsOf returns where a proxy leads what it sends, by the names of its clusters.
func hopsOf(wanted proxy, server *xds.FakeDiscoveryServer) map[string][]hop {
	hops := map[string][]hop{}
	for _, assignment := range server.Endpoints(nodeOf(wanted, server)) {
		name := assignment.ClusterName
		for _, locality := range assignment.Endpoints {
			for _, each := range locality.LbEndpoints {
				tunnel := each.GetEndpoint().GetAddress().GetEnvoyInternalAddress()
				hops[name] = append(hops[name], hop{util.GetEndpointHost(each), tunnel != nil})
			}
		}
	}
	return hops
}
