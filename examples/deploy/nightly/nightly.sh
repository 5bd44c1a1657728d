#!/bin/sh
# Every night: train again, put the model to use if it is better, score the new applicants. For cron:
#     15 2 * * *  /etc/colonnade/nightly.sh
set -eu
cd "${1:-/etc/colonnade}"
colonnade train credit.toml --detach --alone --if-better auc --json > night.json
run=$(jq -r .run night.json)
colonnade runs wait "$run" --timeout 14400 --json > "$run.json"
colonnade predict credit 'sqlite:crm.db#select * from applicants' --data applicants --out 'sqlite:crm.db#scores'
