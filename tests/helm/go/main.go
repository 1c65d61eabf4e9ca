// Renders the chart given as the first argument with the values of the second, as `helm template` does (values are checked against
// values.schema.json; a third one: an object that the cluster has, for `lookup`), decodes every object strictly into the types of the Kubernetes API, and prints the objects as one JSON array.
// Exit code 1: the values are refused; 2: an object is not one of the API.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"

	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"
)

var kinds = map[string]func() any{
	"v1/Secret":                                func() any { return &corev1.Secret{} },
	"v1/Service":                               func() any { return &corev1.Service{} },
	"v1/ServiceAccount":                        func() any { return &corev1.ServiceAccount{} },
	"v1/ConfigMap":                             func() any { return &corev1.ConfigMap{} },
	"apps/v1/StatefulSet":                      func() any { return &appsv1.StatefulSet{} },
	"batch/v1/Job":                             func() any { return &batchv1.Job{} },
	"batch/v1/CronJob":                         func() any { return &batchv1.CronJob{} },
	"rbac.authorization.k8s.io/v1/Role":        func() any { return &rbacv1.Role{} },
	"rbac.authorization.k8s.io/v1/RoleBinding": func() any { return &rbacv1.RoleBinding{} },
	"policy/v1/PodDisruptionBudget":            func() any { return &policyv1.PodDisruptionBudget{} },
	"networking.k8s.io/v1/NetworkPolicy":       func() any { return &networkingv1.NetworkPolicy{} },
}

func main() {
	chart, err := loader.Load(os.Args[1])
	fail(2, err)
	values, err := chartutil.ReadValuesFile(os.Args[2])
	fail(2, err)
	release := chartutil.ReleaseOptions{Name: "shop", Namespace: "storage", Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(chart, values, release, nil)
	fail(1, err)
	files, err := render(chart, all)
	fail(1, err)
	names := make([]string, 0, len(files))
	for name := range files {
		names = append(names, name)
	}
	sort.Strings(names)
	objects := []any{}
	for _, name := range names {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for _, text := range strings.Split(files[name], "\n---") {
			var head struct{ ApiVersion, Kind string }
			if err := yaml.Unmarshal([]byte(text), &head); err != nil {
				fail(2, fmt.Errorf("%s: %w\n%s", name, err, text))
			}
			if head.Kind == "" {
				continue
			}
			make, known := kinds[head.ApiVersion+"/"+head.Kind]
			if !known {
				fail(2, fmt.Errorf("%s: no type for %s %s", name, head.ApiVersion, head.Kind))
			}
			object := make()
			if err := yaml.UnmarshalStrict([]byte(text), object); err != nil {
				fail(2, fmt.Errorf("%s: %w\n%s", name, err, text))
			}
			objects = append(objects, object)
		}
	}
	fail(2, json.NewEncoder(os.Stdout).Encode(objects))
}

func render(chart *chart.Chart, values chartutil.Values) (map[string]string, error) {
	if len(os.Args) < 4 {
		return engine.Render(chart, values)
	}
	content, err := os.ReadFile(os.Args[3])
	fail(2, err)
	there := &unstructured.Unstructured{}
	fail(2, there.UnmarshalJSON(content))
	return engine.RenderWithClientProvider(chart, values, cluster{there: there})
}

// A cluster that has one object.
type cluster struct {
	dynamic.NamespaceableResourceInterface
	there *unstructured.Unstructured
	kind  string
}

func (c cluster) GetClientFor(_, kind string) (dynamic.NamespaceableResourceInterface, bool, error) {
	return cluster{there: c.there, kind: kind}, true, nil
}

func (c cluster) Namespace(string) dynamic.ResourceInterface { return c }

func (c cluster) Get(_ context.Context, name string, _ metav1.GetOptions, _ ...string) (*unstructured.Unstructured, error) {
	if c.kind == c.there.GetKind() && name == c.there.GetName() {
		return c.there, nil
	}
	return nil, errors.NewNotFound(schema.GroupResource{Resource: c.kind}, name)
}

func fail(code int, err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(code)
	}
}
