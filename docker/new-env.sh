#!/bin/sh
# Prints a .env for docker-compose.yaml: .env.example with every empty value made up. Needs openssl.
#   (umask 077; docker/new-env.sh > .env)
set -eu

while IFS= read -r line; do
  case "$line" in
    AIRFLOW_FERNET_KEY=) line="$line$(openssl rand -base64 32 | tr '+/' '-_')" ;;
    AIRFLOW_JWT_SECRET=) line="$line$(openssl rand -hex 64)" ;;
    [A-Z]*=) line="$line$(openssl rand -hex 32)" ;;
  esac
  printf '%s\n' "$line"
done < "$(dirname "$0")/../.env.example"
