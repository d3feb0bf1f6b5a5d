{{/* (dict "root" $ "container" …): what the container sets itself wins. */}}
{{- define "holdfast.applicationContainer" -}}
{{- $env := default (list) .container.env -}}
{{- if .root.Values.sidecar.setBaseUrls -}}
{{- $names := list -}}
{{- range $env -}}
{{- $names = append $names .name -}}
{{- end -}}
{{- range include "holdfast.sidecar.env" .root | fromYamlArray -}}
{{- if not (has .name $names) -}}
{{- $env = append $env . -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toYaml (merge (dict "env" $env) .container) -}}
{{- end -}}
