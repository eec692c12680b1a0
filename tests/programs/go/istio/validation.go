package main

import (
	"encoding/json"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"istio.io/istio/manifests"
	kubecrd "istio.io/istio/pilot/pkg/config/kube/crd"
	"istio.io/istio/pkg/config/crd"
	"istio.io/istio/pkg/config/schema/collections"
	_ "istio.io/istio/pkg/config/xds" // the types of filters that policies may carry
)

const definitionsFile = "charts/base/files/crd-all.gen.yaml"

// definitions are the CustomResourceDefinitions of this Istio, with their CEL rules.
type definitions struct {
	validator *crd.Validator
}

func readDefinitions() (*definitions, error) {
	content, err := manifests.FS.ReadFile(definitionsFile)
	if err != nil {
		return nil, err
	}
	file, err := os.CreateTemp("", "istio-definitions-*.yaml")
	if err != nil {
		return nil, err
	}
	defer os.Remove(file.Name())
	if _, err := file.Write(content); err != nil {
		return nil, err
	}
	if err := file.Close(); err != nil {
		return nil, err
	}
	validator, err := crd.NewValidatorFromFilesWithOptions([]string{file.Name()}, crd.WithoutCRDValidation())
	if err != nil {
		return nil, err
	}
	validator.SkipMissing = true
	return &definitions{validator}, nil
}

// validate asks the API server's part (schema, CEL) and the webhook's, and notes what each complains about.
func (d *definitions) validate(document json.RawMessage, to *answer) {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal(document, object); err != nil {
		to.Rejections["unreadable"] = append(to.Rejections["unreadable"], err.Error())
		return
	}
	key := object.GetKind() + "/" + object.GetNamespace() + "/" + object.GetName()
	reject := func(by string, err error) {
		to.Rejections[key] = append(to.Rejections[key], by+": "+err.Error())
	}
	if err := d.validator.ValidateCustomResource(object); err != nil {
		reject("definition", err)
	}
	configs, _, err := kubecrd.ParseInputs(string(document))
	if err != nil {
		reject("webhook", err)
	}
	for _, config := range configs {
		schema, known := collections.PilotGatewayAPI().FindByGroupVersionKind(config.GroupVersionKind)
		if !known {
			continue
		}
		warning, err := schema.ValidateConfig(config)
		if err != nil {
			reject("webhook", err)
		}
		if warning != nil {
			to.Warnings[key] = append(to.Warnings[key], warning.Error())
		}
	}
}
