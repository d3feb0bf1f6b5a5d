# A mistake for the linter to find: the last user is root.
FROM node:24.21.0-trixie-slim
USER root
