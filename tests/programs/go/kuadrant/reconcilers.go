package main

import (
	"net/http"
	"reflect"
	"unsafe"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	controllers "github.com/kuadrant/kuadrant-operator/internal/controller"
)

// validator returns the operator's validator in a cluster where everything that it needs is installed.
func validator() *controllers.AuthPolicyValidator {
	made := &controllers.AuthPolicyValidator{}
	for _, name := range []string{"isGatewayAPIInstalled", "isGatewayProviderInstalled", "isAuthorinoOperatorInstalled"} {
		set(made, name, true)
	}
	return made
}

// statusUpdater returns the operator's own, with a client that reaches nobody: the conditions are read from the
// policies in memory, which are set before they are sent.
func statusUpdater() *controllers.AuthPolicyStatusUpdater {
	client, err := dynamic.NewForConfig(&rest.Config{Host: "http://127.0.0.1:0", Transport: echo{}})
	if err != nil {
		panic(err)
	}
	made := &controllers.AuthPolicyStatusUpdater{}
	set(made, "client", client)
	return made
}

// set gives a value to a field that only the operator's own package may name.
func set(object any, name string, value any) {
	field := reflect.ValueOf(object).Elem().FieldByName(name)
	reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Set(reflect.ValueOf(value))
}

// echo answers every request with its own body.
type echo struct{}

func (echo) RoundTrip(request *http.Request) (*http.Response, error) {
	header := http.Header{"Content-Type": {"application/json"}}
	return &http.Response{StatusCode: http.StatusOK, Header: header, Body: request.Body, Request: request}, nil
}
