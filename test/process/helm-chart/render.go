// Renders the templates of a chart, as `helm template` does, with the functions of text/template, of sprig, and `include` and `toYaml` of Helm.
// render.go FOLDER < VALUES: the values in JSON are laid over those of the chart. A failed template ends the program with 1.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"text/template"

	"github.com/Masterminds/sprig"
	"gopkg.in/yaml.v3"
)

type values = map[string]interface{}

// files are those of the chart, as `.Files`.
type files struct{ folder string }

func (own files) Get(name string) (string, error) {
	text, err := os.ReadFile(filepath.Join(own.folder, name))
	return string(text), err
}

func toYaml(value interface{}) (string, error) {
	var text bytes.Buffer
	encoder := yaml.NewEncoder(&text)
	encoder.SetIndent(2)
	err := encoder.Encode(value)
	return strings.TrimSuffix(text.String(), "\n"), err
}

// overlay puts the members of over into the place of those of base.
func overlay(base, over values) values {
	for name, value := range over {
		own, isMap := base[name].(values)
		given, isGiven := value.(values)
		if isMap && isGiven {
			base[name] = overlay(own, given)
		} else {
			base[name] = value
		}
	}
	return base
}

func read(path string) (values, error) {
	found := values{}
	text, err := os.ReadFile(path)
	if err == nil {
		err = yaml.Unmarshal(text, &found)
	}
	return found, err
}

// parsed has the templates of the chart by their file names.
func parsed(folder string) (*template.Template, []string, error) {
	all := template.New("chart").Option("missingkey=zero")
	functions := sprig.TxtFuncMap()
	functions["toYaml"] = toYaml
	functions["include"] = func(name string, data interface{}) (string, error) {
		var text bytes.Buffer
		err := all.ExecuteTemplate(&text, name, data)
		return text.String(), err
	}
	all.Funcs(functions)
	paths, err := filepath.Glob(filepath.Join(folder, "templates", "*"))
	if err == nil {
		_, err = all.ParseFiles(paths...)
	}
	return all, paths, err
}

func render(folder string) error {
	about, err := read(filepath.Join(folder, "Chart.yaml"))
	if err != nil {
		return err
	}
	own, err := read(filepath.Join(folder, "values.yaml"))
	if err != nil {
		return err
	}
	text, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	given := values{}
	if err := yaml.Unmarshal(text, &given); err != nil {
		return err
	}
	data := values{
		"Values":  overlay(own, given),
		"Release": values{"Name": "mail", "Namespace": "default", "Service": "Helm"},
		"Chart":   values{"Name": about["name"], "Version": about["version"], "AppVersion": about["appVersion"]},
		"Files":   files{folder},
	}
	all, paths, err := parsed(folder)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if strings.HasPrefix(filepath.Base(path), "_") {
			continue
		}
		var out bytes.Buffer
		if err := all.ExecuteTemplate(&out, filepath.Base(path), data); err != nil {
			return err
		}
		if object := strings.TrimSpace(out.String()); object != "" {
			fmt.Printf("---\n# %s\n%s\n", filepath.Base(path), object)
		}
	}
	return nil
}

func main() {
	if err := render(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
