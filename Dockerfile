# The release builds with `--build-arg NODE_IMAGE=node:24.21.0-trixie-slim@sha256:…`; docs/docker.md says where the digest is from.
ARG NODE_IMAGE=node:24.21.0-trixie-slim

FROM ${NODE_IMAGE} AS dependencies
WORKDIR /app
COPY package.json package-lock.json ./
# No dependency has a script to run when it is installed, and none is allowed to get one.
RUN --mount=type=cache,target=/root/.npm \
    npm ci --omit=dev --ignore-scripts --no-audit --no-fund

FROM ${NODE_IMAGE} AS build
WORKDIR /app
COPY package.json package-lock.json ./
RUN --mount=type=cache,target=/root/.npm \
    npm ci --ignore-scripts --no-audit --no-fund
COPY tsconfig.json tsconfig.build.json ./
COPY scripts/build.mjs scripts/compile-client.mjs scripts/
COPY src src
RUN node scripts/build.mjs

# What Node needs of an operating system, and nothing else: no shell, no package manager, no npm.
FROM ${NODE_IMAGE} AS system
SHELL ["/bin/bash", "-o", "pipefail", "-c"]
WORKDIR /image
RUN mkdir -p app etc /volumes/data \
    && cp --parents /usr/local/bin/node /usr/local/LICENSE . \
    && ldd /usr/local/bin/node | grep -o '/[^ ]*' | sort -u | xargs cp --dereference --parents -t . \
    && echo 'holdfast:x:65532:65532::/data:/usr/sbin/nologin' > etc/passwd \
    && echo 'holdfast:x:65532:' > etc/group \
    && echo 'hosts: files dns' > etc/nsswitch.conf

FROM scratch
ARG VERSION=0.1.0
ARG REVISION=unknown
ARG CREATED=1970-01-01T00:00:00Z
ARG SOURCE=unknown
LABEL org.opencontainers.image.title="Holdfast" \
      org.opencontainers.image.description="An OpenAI-compatible streaming proxy that keeps an LLM answer alive when something breaks in the middle of it." \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.created="${CREATED}" \
      org.opencontainers.image.source="${SOURCE}"
COPY --from=system /image/ /
COPY --from=system --chown=65532:65532 /volumes/ /
COPY --from=dependencies /app/node_modules /app/node_modules
COPY --from=build /app/dist /app/dist
COPY package.json holdfast.schema.json LICENSE scripts/container-health.mjs /app/
# As `npm start` has it: what a stream takes of memory. docs/docker.md
ENV NODE_ENV=production NODE_OPTIONS=--max-semi-space-size=8
USER 65532:65532
WORKDIR /
# Where the default store is.
ENV STATE_DIRECTORY=/data
VOLUME ["/data"]
# The admin port is not published by `docker run -P`.
EXPOSE 8080
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["/usr/local/bin/node", "/app/container-health.mjs"]
# Node is the first process: it gets the signals itself, and starts no others whose ends it would have to wait for.
ENTRYPOINT ["/usr/local/bin/node", "/app/dist/cli.js"]
# From outside of a container, its loopback address cannot be reached.
CMD ["serve", "--host", "0.0.0.0"]
