{{- define "holdfast.scheduling" -}}
{{- if .Values.topologySpread.enabled -}}
topologySpreadConstraints:
{{- with .Values.topologySpread.constraints }}
  {{- toYaml . | nindent 2 }}
{{- else }}
{{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
  - maxSkew: 1
    topologyKey: {{ . }}
    whenUnsatisfiable: {{ $.Values.topologySpread.whenUnsatisfiable }}
    labelSelector:
      matchLabels:
        {{- include "holdfast.selector" (dict "root" $ "component" "gateway") | nindent 8 }}
    # Each rollout by itself: the pods that are about to go do not count.
    matchLabelKeys: [pod-template-hash]
{{- end }}
{{- end }}
{{- end }}
{{- with .Values.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .Values.affinity }}
affinity:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}
