{{- define "agentx.labels" -}}
app.kubernetes.io/name: agentx
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "agentx.sqlite" -}}
{{- if not (or .Values.postgres.externalUrl .Values.postgres.existingSecret) }}true{{ end -}}
{{- end -}}
