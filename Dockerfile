# kopt on a CPU: questions, searches, specs and citations from an index that is built already, below a home that
# nobody writes. docs/pipelines.md says how it is used.
#
#     docker build -t kopt . && docker run --rm kopt ask "why is my softmax memory-bound on H100"

FROM python:3.12-slim AS wheel
WORKDIR /src
COPY . .
RUN pip wheel --no-deps --wheel-dir /wheels .

FROM python:3.12-slim
RUN apt-get update \
    && apt-get install --no-install-recommends --yes git \
    && rm -rf /var/lib/apt/lists/*
COPY constraints.txt /tmp/constraints.txt
COPY --from=wheel /wheels /tmp/wheels
# A mirror in place of PyTorch's own index: --build-arg TORCH_INDEX=https://...
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
RUN python -m venv /opt/kopt \
    && /opt/kopt/bin/pip install --no-cache-dir -c /tmp/constraints.txt torch --index-url "$TORCH_INDEX" \
    && /opt/kopt/bin/pip install --no-cache-dir -c /tmp/constraints.txt /tmp/wheels/*.whl
ENV PATH=/opt/kopt/bin:$PATH KOPT_HOME=/var/lib/kopt
RUN kopt ingest && chmod -R a-w,a+rX /var/lib/kopt && useradd --uid 10001 --create-home kopt
USER 10001
WORKDIR /work
ENTRYPOINT ["kopt"]
CMD ["--help"]
