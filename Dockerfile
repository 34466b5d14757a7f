# One image for every posture; all configuration comes through environment variables (docs/configuration.md).
#   docker build -t agentx-server . && docker run -d -p 4700:4700 -v agentx-data:/data agentx-server
FROM python:3.11-slim-bookworm AS build
WORKDIR /src
COPY pyproject.toml README.md constraints.txt ./
COPY config ./config
COPY apps ./apps
COPY templates ./templates
COPY static ./static
COPY fixtures ./fixtures
RUN python -m venv /opt/agentx \
    && /opt/agentx/bin/pip install --no-cache-dir --disable-pip-version-check -c constraints.txt '.[grpc]'

FROM python:3.11-slim-bookworm
RUN useradd --system --uid 10001 --home-dir /data --no-create-home agentx \
    && mkdir /data && chown agentx /data
COPY --from=build /opt/agentx /opt/agentx
ENV PATH=/opt/agentx/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    AGENTX_HOME=/data \
    PORT=4700
USER agentx
VOLUME /data
EXPOSE 4700 4317
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; u.urlopen('http://127.0.0.1:' + os.environ['PORT'] + '/health', timeout=2)"]
CMD ["agentx-server"]
