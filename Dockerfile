# Airflow, Spark, the object store and Penstock in one image: every service of docker-compose.yaml runs it, but the
# databases and the exporter of metrics.
# The packages are those of requirements-runtime.txt, by hash; jars come with pinned checksums; nothing is fetched at run
# time. It builds on x86-64 and on aarch64.

FROM python:3.11.13-slim-bookworm

RUN apt-get update \
 && apt-get install -y --no-install-recommends openjdk-17-jre-headless procps tini \
 && rm -rf /var/lib/apt/lists/* \
 && ln -s "java-17-openjdk-$(dpkg --print-architecture)" /usr/lib/jvm/java-17 \
 && useradd --uid 50000 --create-home --shell /usr/sbin/nologin penstock \
 && mkdir -p /opt/penstock \
 && chown penstock: /opt/penstock

USER penstock
WORKDIR /opt/penstock

COPY --chown=penstock requirements-runtime.txt ./
RUN python -m venv .venv \
 && .venv/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-runtime.txt

COPY --chown=penstock plugins plugins
COPY --chown=penstock dags dags
COPY --chown=penstock spark_apps spark_apps
COPY --chown=penstock include include
COPY --chown=penstock bin bin
COPY --chown=penstock stack stack
COPY --chown=penstock docker docker
# The runbooks: the CDC page shows them.
COPY --chown=penstock docs docs

ENV JAVA_HOME=/usr/lib/jvm/java-17 \
    PATH=/opt/penstock/docker/bin:/opt/penstock/.venv/bin:/opt/penstock/bin:$PATH \
    PENSTOCK_HOME=/opt/penstock \
    PENSTOCK_ZIP=/opt/penstock/.local/penstock.zip \
    SPARK_HOME=/opt/penstock/.venv/lib/python3.11/site-packages/pyspark \
    SPARK_CONF_DIR=/opt/penstock/.local/spark-conf \
    SPARK_WORKER_DIR=/opt/penstock/.local/spark-work \
    PYSPARK_PYTHON=/opt/penstock/.venv/bin/python \
    NUMBA_CACHE_DIR=/opt/penstock/.local/numba \
    AIRFLOW_HOME=/opt/penstock/.local/airflow \
    AIRFLOW__CORE__DAGS_FOLDER=/opt/penstock/dags \
    AIRFLOW__CORE__PLUGINS_FOLDER=/opt/penstock/plugins \
    AIRFLOW__CORE__LOAD_EXAMPLES=False

# Spark's and the store's jars, the packed library, the compiled decoder; Spark's settings for these containers; and the
# folders that volumes are mounted on, so that a new volume belongs to this user.
RUN python -m stack setup --cluster --no-class-archive \
 && cp docker/spark-defaults.conf .local/spark-conf/ \
 && mkdir -p .local/airflow/logs .local/store

ENTRYPOINT ["/usr/bin/tini", "--"]
CMD ["airflow", "version"]
