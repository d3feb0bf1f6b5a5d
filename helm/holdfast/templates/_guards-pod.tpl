{{- define "holdfast.guards.pod" -}}
{{- $problems := list -}}
{{- with .Values.strategy -}}
{{- $type := default "RollingUpdate" .type -}}
{{- $persistence := and (eq $.Values.store.type "file") $.Values.store.file.persistence.enabled -}}
{{- if and $persistence (eq $type "RollingUpdate") -}}
{{- $problems = append $problems "strategy.type: RollingUpdate would start a pod while the one before it still has the volume of store.file.persistence; set Recreate, or leave strategy empty" -}}
{{- end -}}
{{- if and .rollingUpdate (eq $type "Recreate") -}}
{{- $problems = append $problems "strategy.rollingUpdate: is for strategy.type RollingUpdate, and it is Recreate; remove one of them" -}}
{{- end -}}
{{- $surge := dig "rollingUpdate" "maxSurge" "25%" . | toString -}}
{{- $unavailable := dig "rollingUpdate" "maxUnavailable" "25%" . | toString -}}
{{- if and (has $surge (list "0" "0%")) (has $unavailable (list "0" "0%")) -}}
{{- $problems = append $problems "strategy.rollingUpdate: maxSurge and maxUnavailable are both 0, so that no pod can be replaced; set one of them" -}}
{{- end -}}
{{- end -}}
{{- if and (eq .Values.dnsPolicy "None") (not (get .Values.dnsConfig "nameservers")) -}}
{{- $problems = append $problems "dnsPolicy: None leaves the pod without a name server; set dnsConfig.nameservers" -}}
{{- end -}}
{{- range $value, $containers := dict "extraContainers" .Values.extraContainers "extraInitContainers" .Values.extraInitContainers -}}
{{- range $containers -}}
{{- if eq .name "holdfast" -}}
{{- $problems = append $problems (printf "%s: holdfast is the container of the chart; take another name" $value) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- toJson $problems -}}
{{- end -}}
