{{/*
For the charts of applications, with this chart as a dependency in mode `sidecar`. All take the context of this chart:

  initContainers:
    {{- include "holdfast.sidecar" .Subcharts.holdfast | nindent 4 }}
  containers:
    - env:
        {{- include "holdfast.sidecar.env" .Subcharts.holdfast | nindent 8 }}
  volumes:
    {{- include "holdfast.sidecar.volumes" .Subcharts.holdfast | nindent 4 }}

The pod takes `holdfast.sidecar.annotations` and `holdfast.sidecar.labels` besides.
*/}}
{{- define "holdfast.sidecar" -}}
{{- if ne .Values.mode "sidecar" -}}
{{- fail "holdfast.sidecar: the mode of the chart holdfast is gateway; set holdfast.mode=sidecar" -}}
{{- end -}}
- name: holdfast
  # An init container that goes on: it is ready before the application starts, and stops after it has ended.
  restartPolicy: Always
  ports:
    - name: holdfast-admin
      containerPort: {{ int .Values.ports.admin }}
  {{- include "holdfast.container" . | nindent 2 }}
{{- end -}}

{{- define "holdfast.sidecar.volumes" -}}
{{- include "holdfast.volumes" . -}}
{{- end -}}

{{/* Where SDKs look for the address of the API. */}}
{{- define "holdfast.sidecar.env" -}}
- name: OPENAI_BASE_URL
  value: http://127.0.0.1:{{ int .Values.ports.api }}/v1
- name: ANTHROPIC_BASE_URL
  value: http://127.0.0.1:{{ int .Values.ports.api }}
{{- end -}}

{{/* A pod whose template does not change goes on with the configuration it has. */}}
{{- define "holdfast.sidecar.annotations" -}}
{{- include "holdfast.checksums" . -}}
{{- end -}}

{{/* The PodMonitor and the NetworkPolicy of the application find such pods by it. */}}
{{- define "holdfast.sidecar.labels" -}}
holdfast-sidecar: {{ include "holdfast.fullname" . }}
{{- end -}}
