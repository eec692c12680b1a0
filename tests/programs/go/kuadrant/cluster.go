package main

import (
	"encoding/json"
	"fmt"

	authorinooperatorv1beta1 "github.com/kuadrant/authorino-operator/api/v1beta1"
	authorinov1beta3 "github.com/kuadrant/authorino/api/v1beta3"
	"github.com/kuadrant/policy-machinery/controller"
	"github.com/kuadrant/policy-machinery/machinery"
	istiov1beta1 "istio.io/api/type/v1beta1"
	istionetworkingv1alpha3 "istio.io/client-go/pkg/apis/networking/v1alpha3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayapiv1 "sigs.k8s.io/gateway-api/apis/v1"

	kuadrantv1 "github.com/kuadrant/kuadrant-operator/api/v1"
	kuadrantv1beta1 "github.com/kuadrant/kuadrant-operator/api/v1beta1"
	kuadrantauthorino "github.com/kuadrant/kuadrant-operator/internal/authorino"
	controllers "github.com/kuadrant/kuadrant-operator/internal/controller"
	kuadrantistio "github.com/kuadrant/kuadrant-operator/internal/istio"
	"github.com/kuadrant/kuadrant-operator/internal/wasm"
)

const (
	namespace   = "kuadrant-system"
	className   = "istio"
	istioIsHere = "istio.io/gateway-controller"
)

// cluster is what is read, and the Kuadrant and GatewayClass that every cluster has.
type cluster struct {
	kuadrant *kuadrantv1beta1.Kuadrant
	class    *gatewayapiv1.GatewayClass
	gateways []*gatewayapiv1.Gateway
	https    []*gatewayapiv1.HTTPRoute
	grpcs    []*gatewayapiv1.GRPCRoute
	policies []*kuadrantv1.AuthPolicy
}

func readCluster(documents []json.RawMessage) (*cluster, error) {
	read := &cluster{
		kuadrant: &kuadrantv1beta1.Kuadrant{
			TypeMeta:   metav1.TypeMeta{APIVersion: kuadrantv1beta1.GroupVersion.String(), Kind: "Kuadrant"},
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "kuadrant", UID: "kuadrant"},
		},
		class: &gatewayapiv1.GatewayClass{
			TypeMeta:   metav1.TypeMeta{APIVersion: gatewayapiv1.GroupVersion.String(), Kind: "GatewayClass"},
			ObjectMeta: metav1.ObjectMeta{Name: className, UID: className},
			Spec:       gatewayapiv1.GatewayClassSpec{ControllerName: istioIsHere},
		},
	}
	for _, document := range documents {
		var kind metav1.TypeMeta
		if err := json.Unmarshal(document, &kind); err != nil {
			return nil, err
		}
		var err error
		switch kind.Kind {
		case "Gateway":
			read.gateways, err = appended(read.gateways, document)
		case "HTTPRoute":
			read.https, err = appended(read.https, document)
		case "GRPCRoute":
			read.grpcs, err = appended(read.grpcs, document)
		case "AuthPolicy":
			read.policies, err = appended(read.policies, document)
		default:
			err = fmt.Errorf("a %s is not asked about", kind.Kind)
		}
		if err != nil {
			return nil, err
		}
	}
	return read, nil
}

func appended[T any](list []*T, document json.RawMessage) ([]*T, error) {
	object := new(T)
	err := json.Unmarshal(document, object)
	return append(list, object), err
}

// topology links everything as the operator does, with all that it waits for: the AuthConfigs of the effective
// policies, Authorino, and the EnvoyFilters of each Gateway.
func (c *cluster) topology(effective controllers.EffectiveAuthPolicies) (*machinery.Topology, error) {
	store := controller.Store{"kuadrant": c.kuadrant, "class": c.class}
	put := func(kind string, object controller.Object) {
		store[kind+"/"+object.GetNamespace()+"/"+object.GetName()] = object
	}
	for _, gateway := range c.gateways {
		put("gateway", gateway)
	}
	for _, route := range c.https {
		put("http", route)
	}
	for _, route := range c.grpcs {
		put("grpc", route)
	}
	objects := []machinery.Object{c.kuadrant, &controller.RuntimeObject{Object: readyAuthorino()}}
	for path, policy := range effective {
		objects = append(objects, &controller.RuntimeObject{Object: readyAuthConfig(path, policy)})
	}
	for _, gateway := range c.gateways {
		for _, name := range []string{controllers.AuthClusterName(gateway.Name), wasm.ExtensionName(gateway.Name)} {
			objects = append(objects, &controller.RuntimeObject{Object: envoyFilter(gateway, name)})
		}
	}
	policies := make([]machinery.Policy, 0, len(c.policies))
	for _, policy := range c.policies {
		policies = append(policies, policy)
	}
	return machinery.NewGatewayAPITopology(
		machinery.WithGatewayClasses(c.class),
		machinery.WithGateways(c.gateways...),
		machinery.WithHTTPRoutes(c.https...),
		machinery.WithGRPCRoutes(c.grpcs...),
		machinery.ExpandGatewayListeners(),
		machinery.ExpandHTTPRouteRules(),
		machinery.ExpandGRPCRouteRules(),
		machinery.ExpandServicePorts(),
		machinery.WithGatewayAPITopologyPolicies(policies...),
		machinery.WithGatewayAPITopologyObjects(objects...),
		machinery.WithGatewayAPITopologyLinks(
			kuadrantv1beta1.LinkKuadrantToGatewayClasses(store),
			kuadrantv1beta1.LinkKuadrantToAuthorino(store),
			kuadrantauthorino.LinkHTTPRouteRuleToAuthConfig(store),
			kuadrantauthorino.LinkGRPCRouteRuleToAuthConfig(store),
			kuadrantistio.LinkGatewayToEnvoyFilter(store),
		),
	)
}

func readyAuthorino() *authorinooperatorv1beta1.Authorino {
	return &authorinooperatorv1beta1.Authorino{
		TypeMeta:   metav1.TypeMeta{APIVersion: authorinooperatorv1beta1.GroupVersion.String(), Kind: "Authorino"},
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "authorino"},
		Status: authorinooperatorv1beta1.AuthorinoStatus{Conditions: []authorinooperatorv1beta1.Condition{
			{Type: authorinooperatorv1beta1.ConditionReady, Status: "True"},
		}},
	}
}

func readyAuthConfig(path string, policy controllers.EffectiveAuthPolicy) *authorinov1beta3.AuthConfig {
	rule := policy.Path[len(policy.Path)-1]
	return &authorinov1beta3.AuthConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: authorinov1beta3.GroupVersion.String(), Kind: "AuthConfig"},
		ObjectMeta: metav1.ObjectMeta{
			Namespace:   namespace,
			Name:        controllers.AuthConfigNameForPath(path),
			Annotations: map[string]string{rule.GroupVersionKind().GroupKind().String(): rule.GetLocator()},
		},
		Status: authorinov1beta3.AuthConfigStatus{Conditions: []authorinov1beta3.AuthConfigStatusCondition{
			{Type: authorinov1beta3.StatusConditionReady, Status: "True"},
		}},
	}
}

func envoyFilter(gateway *gatewayapiv1.Gateway, name string) *istionetworkingv1alpha3.EnvoyFilter {
	filter := &istionetworkingv1alpha3.EnvoyFilter{
		TypeMeta:   metav1.TypeMeta{APIVersion: "networking.istio.io/v1alpha3", Kind: "EnvoyFilter"},
		ObjectMeta: metav1.ObjectMeta{Namespace: gateway.Namespace, Name: name},
	}
	filter.Spec.TargetRefs = []*istiov1beta1.PolicyTargetReference{
		{Group: gatewayapiv1.GroupName, Kind: "Gateway", Name: gateway.Name},
	}
	return filter
}
