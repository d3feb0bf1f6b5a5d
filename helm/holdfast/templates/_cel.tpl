{{/*
A value as a CEL literal. CEL wants all values of a map or a list to have one type, which they have when each is dynamic.
*/}}
{{- define "holdfast.cel" -}}
{{- $parts := list -}}
{{- if kindIs "map" . -}}
{{- range $key, $value := . -}}
{{- $parts = append $parts (printf "%s: %s" (toJson $key) (include "holdfast.cel" $value)) -}}
{{- end -}}
dyn({ {{- join ", " $parts -}} })
{{- else if kindIs "slice" . -}}
{{- range . -}}
{{- $parts = append $parts (include "holdfast.cel" .) -}}
{{- end -}}
dyn([ {{- join ", " $parts -}} ])
{{- else -}}
dyn({{ toRawJson . }})
{{- end -}}
{{- end -}}
