// Writes the SDK of a package schema in a language, with the generator of Pulumi's own language host.
//
// Usage: pulumi-sdk-generator go|nodejs|python SCHEMA DIRECTORY
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pulumi/pulumi/pkg/v3/codegen/go"
	"github.com/pulumi/pulumi/pkg/v3/codegen/nodejs"
	"github.com/pulumi/pulumi/pkg/v3/codegen/python"
	"github.com/pulumi/pulumi/pkg/v3/codegen/schema"
)

func main() {
	if len(os.Args) != 4 {
		fail(fmt.Errorf("usage: %s go|nodejs|python SCHEMA DIRECTORY", os.Args[0]))
	}
	files, err := generated(os.Args[1], os.Args[2])
	if err != nil {
		fail(err)
	}
	for name, content := range files {
		path := filepath.Join(os.Args[3], name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			fail(err)
		}
		if err := os.WriteFile(path, content, 0o644); err != nil {
			fail(err)
		}
	}
}

func generated(language, file string) (map[string][]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var spec schema.PackageSpec
	if err := json.Unmarshal(text, &spec); err != nil {
		return nil, err
	}
	loader := schema.NewCachedLoader(nil) // the schema refers to no other
	pkg, diagnostics, err := schema.BindSpec(spec, loader, schema.ValidationOptions{})
	if err != nil {
		return nil, err
	}
	if diagnostics.HasErrors() {
		return nil, diagnostics
	}
	pkg.SupportPack = true // as `pulumi package add` does
	switch language {
	case "go":
		return gen.GeneratePackage("pulumi", pkg, nil)
	case "nodejs":
		return nodejs.GeneratePackage("pulumi", pkg, nil, nil, true, loader)
	case "python":
		return python.GeneratePackage("pulumi", pkg, nil, loader)
	}
	return nil, fmt.Errorf("there is no generator for %s", language)
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
