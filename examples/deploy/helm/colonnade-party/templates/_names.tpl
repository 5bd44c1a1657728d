{{- define "party.labels" -}}
app.kubernetes.io/name: colonnade-party
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "party.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end }}

{{- define "party.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{- define "party.status" -}}
exec: {command: [colonnade, party, --config, /srv/colonnade/party.toml, --status]}
{{- end }}
