package main

import (
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"istio.io/istio/pilot/pkg/model"
	"istio.io/istio/pilot/test/xds"
	"istio.io/istio/pkg/cluster"
	"istio.io/istio/pkg/config/constants"
	"istio.io/istio/pkg/config/mesh"
	"istio.io/istio/pkg/test"
)

const version = "1.31.0" // of every proxy; without one istiod assumes an old one

// proxy is a pod whose configuration is wanted; its type is sidecar, router or waypoint.
type proxy struct {
	Name           string            `json:"name"`
	Namespace      string            `json:"namespace"`
	Type           model.NodeType    `json:"type"`
	Address        string            `json:"address"`
	Labels         map[string]string `json:"labels"`
	ServiceAccount string            `json:"serviceAccount"`
}

// configuration is what istiod sends to a proxy.
type configuration struct {
	Listeners []json.RawMessage `json:"listeners"`
	Routes    []json.RawMessage `json:"routes"`
}

// configure runs an istiod in this process for as long as it takes to ask it.
func configure(asked question, to *answer) error {
	return test.Wrap(func(t test.Failer) {
		settings, err := mesh.ApplyMeshConfigDefaults(string(asked.Mesh))
		if err != nil {
			t.Fatal(err)
		}
		server := xds.NewFakeDiscoveryServer(t, xds.FakeOptions{
			KubernetesObjectString: documents(asked.Kubernetes),
			ConfigString:           documents(asked.Istio),
			MeshConfig:             settings,
		})
		for _, proxy := range asked.Proxies {
			to.Proxies[proxy.Namespace+"/"+proxy.Name] = configurationOf(proxy, server)
		}
		for _, caller := range asked.Callers {
			to.Callers[caller.Namespace+"/"+caller.Name] = hopsOf(caller, server)
		}
		if server.AmbientIndex != nil {
			to.Ambient = readAmbient(server.AmbientIndex)
		}
	})
}

func configurationOf(wanted proxy, server *xds.FakeDiscoveryServer) configuration {
	node := nodeOf(wanted, server)
	listeners := server.Listeners(node)
	sent := configuration{Listeners: encodeAll(listeners)}
	if wanted.Type != model.SidecarProxy {
		sent.Routes = encodeAll(server.RoutesFromListeners(node, listeners))
	}
	return sent
}

func nodeOf(wanted proxy, server *xds.FakeDiscoveryServer) *model.Proxy {
	return server.SetupProxy(&model.Proxy{
		ID:              wanted.Name + "." + wanted.Namespace,
		Type:            wanted.Type,
		ConfigNamespace: wanted.Namespace,
		IPAddresses:     []string{wanted.Address},
		Labels:          wanted.Labels,
		Metadata: &model.NodeMetadata{
			ClusterID:      cluster.ID(constants.DefaultClusterName),
			IstioVersion:   version,
			Labels:         wanted.Labels,
			Namespace:      wanted.Namespace,
			ServiceAccount: wanted.ServiceAccount,
		},
	})
}

// documents puts objects into one text, as istiod's own tests have them. JSON is YAML, and has no bare `y`.
func documents(objects []json.RawMessage) string {
	texts := make([]string, len(objects))
	for i, object := range objects {
		texts[i] = string(object)
	}
	return strings.Join(texts, "\n---\n")
}

func encodeAll[M proto.Message](messages []M) []json.RawMessage {
	encoded := make([]json.RawMessage, len(messages))
	for i, message := range messages {
		encoded[i] = encode(message)
	}
	return encoded
}

func encode(message proto.Message) json.RawMessage {
	encoded, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(message)
	if err != nil {
		panic(err) // a type that is not linked in
	}
	return encoded
}
