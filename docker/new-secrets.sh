#!/bin/sh
# Makes up each secret that docker-compose.yaml names, one file each in .secrets/. What is there already is left as it is:
# the servers got those passwords when their volumes were made. Needs openssl.
set -eu

folder=${1:-$(dirname "$0")/../.secrets}
mkdir -p "$folder"
# The folder is yours alone. Its files have to be readable for everybody: compose mounts them as they are, and inside
# the containers it is another user who reads them.
chmod 700 "$folder"

make_up() {
  name=$1
  shift
  if [ -e "$folder/$name" ]; then
    echo "kept $name"
    return
  fi
  (umask 077 && "$@" >"$folder/.$name")
  chmod 444 "$folder/.$name"
  mv "$folder/.$name" "$folder/$name" # whole or not at all
  echo "made $name"
}

fernet_key() { # 32 bytes in URL-safe base64
  openssl rand -base64 32 | tr '+/' '-_'
}

# The source: superuser (for you), and the role that Penstock reads with
make_up source_superuser openssl rand -hex 32
make_up penstock_capture openssl rand -hex 32
make_up penstock_reader openssl rand -hex 32
# The control server: superuser (for you), Airflow's metadata, ledger and lake catalog
make_up control_superuser openssl rand -hex 32
make_up airflow_db openssl rand -hex 32
make_up penstock_db openssl rand -hex 32
# The object store of landing zone and warehouse: the secret key of its one login, `penstock`
make_up store_key openssl rand -hex 32
# Airflow: the login `admin` of the UI, and its three keys
make_up airflow_admin openssl rand -hex 16
make_up airflow_jwt openssl rand -hex 64
make_up airflow_session openssl rand -hex 32
make_up airflow_fernet fernet_key
