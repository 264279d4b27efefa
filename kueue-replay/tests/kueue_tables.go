// Package scheduler is added to a copy of Kueue's packages, whose tables of cases are written instead of run.
package scheduler

import (
	"encoding/json"
	"os"
	"reflect"
	"testing"
	"unsafe"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"sigs.k8s.io/kueue/pkg/scheduler/flavorassigner"
)

// dump appends a case to cases.json, with what the cases of its table share: a struct, or flavors.
func dump(t *testing.T, name string, parts ...any) {
	gates := map[string]bool{}
	for gate, spec := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		if enabled := utilfeature.DefaultFeatureGate.Enabled(gate); enabled != spec.Default {
			gates[string(gate)] = enabled
		}
	}
	content := map[string]any{"table": t.Name(), "name": name, "gates": gates}
	for _, part := range parts {
		if reflect.TypeOf(part).Kind() != reflect.Struct {
			content["resourceFlavors"] = part
			continue
		}
		copied := reflect.New(reflect.TypeOf(part)).Elem()
		copied.Set(reflect.ValueOf(part))
		for number := range copied.NumField() {
			field := copied.Field(number)
			value := reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Interface()
			if assignment, ok := value.(flavorassigner.Assignment); ok {
				value = assignment.PodSets
			}
			// What is no JSON, such as options of comparisons, describes no case.
			if written, err := json.Marshal(value); err == nil {
				content[copied.Type().Field(number).Name] = json.RawMessage(written)
			}
		}
	}
	file, err := os.OpenFile("cases.json", os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		defer file.Close()
		err = json.NewEncoder(file).Encode(content)
	}
	if err != nil {
		t.Fatal(err)
	}
}
