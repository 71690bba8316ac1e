# The image of the demo's apps and of the explainer (docker compose --profile demo, --profile explainer), and a start
# for one of an app of your own.
ARG PYTHON=3.13

FROM python:${PYTHON}-slim-bookworm AS build
# What pip installs: `.` is the source tree beside this file; elsewhere a release, such as claudescope==0.1.0.
ARG CLAUDESCOPE=.
# Extras to install with it, such as grafana.
ARG EXTRA=
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source
COPY . .
RUN python -m venv /opt/claudescope \
    && if [ -f constraints.txt ]; then export PIP_CONSTRAINT=/source/constraints.txt; fi \
    && python -m pip wheel --no-deps --wheel-dir /wheels "$CLAUDESCOPE" \
    && /opt/claudescope/bin/python -m pip install "$(ls /wheels/*.whl)${EXTRA:+[$EXTRA]}"

FROM python:${PYTHON}-slim-bookworm
RUN useradd --uid 10001 --no-create-home --home-dir /tmp --shell /usr/sbin/nologin claudescope
COPY --from=build /opt/claudescope /opt/claudescope
ENV PATH=/opt/claudescope/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
USER 10001:10001
WORKDIR /tmp
CMD ["claudescope", "demo", "--no-server"]
