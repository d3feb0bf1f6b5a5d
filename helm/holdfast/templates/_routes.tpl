{{/* (dict "root" $ "port" "api" or "admin"): the port of the Service. */}}
{{- define "holdfast.servicePort" -}}
{{- ternary .root.Values.ports.admin .root.Values.service.port (eq (default "api" .port) "admin") | int -}}
{{- end -}}

{{/* JSON: the paths of the API, where none are given. */}}
{{- define "holdfast.paths" -}}
{{- if . -}}
{{- toJson . -}}
{{- else -}}
[{"path": "/v1"}, {"path": "/holdfast/v1"}]
{{- end -}}
{{- end -}}

{{/* Nothing between client and proxy may gather what is a stream, or close what is silent for a moment. */}}
{{- define "holdfast.streamingAnnotations" -}}
{{- $seconds := int .Values.ingress.timeoutSeconds -}}
{{- $body_bytes := dig "limits" "body_bytes" 33554432 .Values.config -}}
{{- if eq .Values.ingress.streaming "ingress-nginx" -}}
nginx.ingress.kubernetes.io/proxy-buffering: "off"
nginx.ingress.kubernetes.io/proxy-request-buffering: "off"
nginx.ingress.kubernetes.io/proxy-http-version: "1.1"
nginx.ingress.kubernetes.io/proxy-read-timeout: "{{ $seconds }}"
nginx.ingress.kubernetes.io/proxy-send-timeout: "{{ $seconds }}"
nginx.ingress.kubernetes.io/proxy-body-size: {{ $body_bytes | toJson | trimAll "\"" | quote }}
nginx.ingress.kubernetes.io/proxy-next-upstream: "off"
{{- else if eq .Values.ingress.streaming "nginx-inc" -}}
nginx.org/proxy-buffering: "False"
nginx.org/proxy-read-timeout: "{{ $seconds }}s"
nginx.org/proxy-send-timeout: "{{ $seconds }}s"
nginx.org/client-max-body-size: {{ $body_bytes | toJson | trimAll "\"" | quote }}
{{- else if eq .Values.ingress.streaming "haproxy" -}}
haproxy.org/timeout-server: "{{ $seconds }}s"
{{- end -}}
{{- end -}}
