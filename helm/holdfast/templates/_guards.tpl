{{/* Values that contradict each other, all of them in one message: which, and what to do. */}}
{{- define "holdfast.guards" -}}
{{- $problems := concat
  (include "holdfast.guards.configuration" . | fromJsonArray)
  (include "holdfast.guards.secrets" . | fromJsonArray)
  (include "holdfast.guards.replicas" . | fromJsonArray)
  (include "holdfast.guards.lifecycle" . | fromJsonArray)
  (include "holdfast.guards.pod" . | fromJsonArray)
  (include "holdfast.guards.service" . | fromJsonArray)
  (include "holdfast.guards.exposure" . | fromJsonArray)
  (include "holdfast.guards.metrics" . | fromJsonArray)
  (include "holdfast.guards.sidecar" . | fromJsonArray) -}}
{{- with $problems -}}
{{- fail (printf "\n\nThese values of the chart cannot be used:\n  - %s\n" (join "\n  - " .)) -}}
{{- end -}}
{{- end -}}
