import { CLIENTS_SCHEMA, OWNER_SCHEMA } from './client-schema.ts';
import { BREAKER_SCHEMA, CHECKPOINT_SCHEMA, RECOVERY_SCHEMA, RESUME_SCHEMA } from './recovery-schema.ts';
import {
  bytes,
  choice,
  flag,
  integer,
  integerOr,
  milliseconds,
  NAMES,
  port,
  type Schema,
  section,
  text,
} from './schema-terms.ts';
import { CLOCKS_SCHEMA, ROUTE_SCHEMA, UPSTREAM_SCHEMA } from './target-schema.ts';
import { WEBHOOKS_SCHEMA } from './webhook-schema.ts';

const LISTEN_SCHEMA = section('Addresses to listen on.', {
  host: {
    type: 'string',
    description: 'Address of the API. `0.0.0.0` is every interface.',
    default: '127.0.0.1',
    minLength: 1,
  },
  admin_host: {
    type: 'string',
    description:
      'Address of the admin port, which has no authentication. By default the same as `host`, or the loopback address if `host` is every interface: only this setting opens the admin port to other machines.',
    examples: ['0.0.0.0'],
    minLength: 1,
  },
  port: port(8080, 'Port of the API: `/v1/*` and `/holdfast/v1/*`.'),
  cors_origins: {
    type: 'array',
    description:
      "Origins of web pages that may use the API: `https://app.example.com`. Holdfast refuses all others, so that a page that a user happens to have open can't spend a key. On the loopback address, these are also the host names that the API accepts.",
    default: [],
    uniqueItems: true,
    items: text('Scheme, name and, where it is not that of the scheme, port.'),
  },
  admin_port: port(9090, 'Port of `/metrics`, `/livez`, `/readyz` and the status page.'),
});

const LIMITS_SCHEMA = section('What one client or one run may use.', {
  body_bytes: bytes(33_554_432, 1024, 'Largest request body, such as a chat completion.'),
  memory_bytes: {
    type: 'integer',
    description:
      "How much of a process's memory current requests and answers may take, by estimate; beyond it new requests get a 503. By default half of what V8 may use (`--max-old-space-size`), or of the container's limit if that is less. Bytes.",
    examples: [536_870_912],
    minimum: 16_777_216,
    maximum: 2 ** 40,
  },
  header_bytes: bytes(16_384, 1024, 'Largest request header section.'),
  run_bytes: bytes(16_777_216, 1024, 'Largest answer of a run.'),
  event_bytes: bytes(4_194_304, 1024, 'Largest single event of a provider.'),
  connections: integer(
    10_000,
    [1, 1_000_000],
    'Client connections open at once; further ones are closed on arrival.',
  ),
  runs_per_owner: integer(
    1000,
    [1, 1_000_000],
    'How many runs of one credential a replica delivers at once; further requests get a 429.',
  ),
  header_ms: milliseconds(20_000, 'Time a client has to send its request headers.'),
  request_ms: milliseconds(300_000, 'Time a client has to send a whole request.'),
  keep_alive_ms: milliseconds(72_000, 'Time a connection may stay open without a request.'),
  client_stall_ms: milliseconds(300_000, 'A client that reads nothing for this long loses its run.'),
  drain_ms: milliseconds(25_000, 'Time active runs have to end after SIGTERM.'),
  drain_delay_ms: {
    ...milliseconds(
      5000,
      'The first part of `drain_ms`, in which `/readyz` already answers 503 but the replica still accepts new requests, so that load balancers can notice. Skipped if `/readyz` was never requested.',
    ),
    minimum: 0,
  },
});

const DELIVERY_SCHEMA = section('How answers reach their clients.', {
  keepalive_ms: integer(
    15_000,
    [5000, 300_000],
    'After sending a client nothing for this long, Holdfast sends an empty event that its wire knows; before there can be one, a comment. Milliseconds.',
  ),
  tool_calls: choice(
    'held',
    ['held', 'live'],
    'When clients see tool calls. `held`: once they are proven closed, so that none is ever cut. `live`: as they arrive; a cut call is made again and continued if it comes out the same, otherwise the answer ends with an error. `Holdfast-Tool-Calls` sets this for one request, `routes[].tool_calls` for a route.',
  ),
  client_profiles: flag(
    true,
    'Clients that Holdfast recognises by `originator` or `user-agent` get the endings that they act on: Codex gets `context_length_exceeded` instead of `response.incomplete` if the context has no room for the rest of an answer.',
  ),
});

const STATUS_SCHEMA = section('What the status page shows, and under which names.', {
  content: flag(
    false,
    'Shows the end of the answers to every host that can reach the admin port, which has no authentication. It never shows prompts or keys.',
  ),
  hosts: {
    type: 'array',
    description:
      'Public host names that the status page and `/metrics` accept. They always accept addresses, names without a dot, and names that end in `.localhost`, `.local`, `.internal` or `.svc`.',
    default: [],
    uniqueItems: true,
    items: text('A name, without a port.'),
  },
  replica_name: text(
    "This replica's name on its own status page, and on those of replicas that share its store. By default the machine's name and the API port.",
  ),
  trace_url: {
    ...text(
      "The status page's link to a run's trace: a URL with `{trace_id}` or `{run_id}`. The id comes from the trace that Holdfast exports, or from the client's `traceparent`.",
    ),
    examples: ['https://traces.example.com/trace/{trace_id}'],
  },
  log_url: {
    ...text("The status page's link to a run's log: a URL with `{run_id}` or `{trace_id}`."),
    examples: ['https://logs.example.com/search?q={run_id}'],
  },
});

const FAULTS_SCHEMA = section('Faults that requests ask for, for tests of what their clients make of them.', {
  allow_header: flag(
    false,
    'Requests may have a `Holdfast-Fault` header, whose faults then strike in their own attempts. Otherwise one that has it gets a 403.',
  ),
});

/** No defaults: absent settings are read from the standard `OTEL_*` variables. */
const TRACING_SCHEMA = section('Traces of runs, sent by OTLP over HTTP.', {
  endpoint: {
    type: 'string',
    description:
      'Base URL of an OTLP receiver that takes HTTP; Holdfast adds `/v1/traces`. By default `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` or `OTEL_EXPORTER_OTLP_ENDPOINT`; without those, there are no traces.',
    examples: ['http://collector:4318'],
    minLength: 1,
  },
  headers: {
    type: 'object',
    description: 'Headers that are sent to the receiver, by name.',
    propertyNames: NAMES,
    additionalProperties: text('A header for the receiver. Never printed.'),
  },
  sample_ratio: {
    type: 'number',
    description:
      "The share of runs to trace if the client's `traceparent` doesn't decide. By default, what `OTEL_TRACES_SAMPLER` says, or all.",
    minimum: 0,
    maximum: 1,
  },
  service_name: text(
    "The service's name in traces. By default `OTEL_SERVICE_NAME` or `OTEL_RESOURCE_ATTRIBUTES`, else `holdfast`.",
  ),
  conversation_ids: {
    type: 'boolean',
    description:
      "Spans have `gen_ai.conversation.id`: a request's name for its conversation, such as its `Holdfast-Thread`. Off by default, because clients choose these names and may put private things into them.",
  },
});

const METRICS_SCHEMA = section('What `/metrics` exposes in addition.', {
  exemplars: flag(
    true,
    'Histograms of recoveries and first tokens carry the id of the last run of each bucket, for scrapers that accept OpenMetrics.',
  ),
  gen_ai: flag(
    false,
    'Attempts and runs are also measured under the names of the OpenTelemetry conventions for generative AI: `gen_ai_…`.',
  ),
});

const LOG_SCHEMA = section('Lines on standard output.', {
  level: choice('info', ['trace', 'debug', 'info', 'warn', 'error', 'silent'], 'The lowest level to log.'),
  format: choice(
    'auto',
    ['auto', 'json', 'pretty'],
    '`json`: one object a line. `pretty`: readable lines, with a summary of each run that has ended. `auto`: `pretty` if standard output is a terminal, otherwise `json`.',
  ),
});

const WORKERS_MAX = 256;

/**
 * The single description of the configuration, from which types, validation, defaults, environment names and the
 * reference are derived.
 */
export const CONFIGURATION_SCHEMA = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Holdfast configuration',
  type: 'object',
  description: 'Configuration of a Holdfast replica.',
  additionalProperties: false,
  required: ['upstreams'],
  properties: {
    listen: LISTEN_SCHEMA,
    secret: {
      type: 'string',
      description:
        "Keys the HMAC that ties a run to its client's credential, signed URLs and, without `sealing_keys`, the proofs of stored data. All replicas that share a store need the same secret. By default Holdfast generates one and keeps it beside a file store.",
      examples: [`\${HOLDFAST_SECRET}`],
      minLength: 16,
    },
    workers: integerOr(
      'auto',
      1,
      [1, WORKERS_MAX],
      'Processes that share the ports, each a replica on a core of its own; `auto` is one for each core. More than 1 need a store that processes can share: files or Redis. See [workers](workers.md).',
    ),
    upstreams: {
      type: 'object',
      description:
        'Providers by name. The first one serves every model without a route, and everything that Holdfast passes through.',
      propertyNames: NAMES,
      additionalProperties: UPSTREAM_SCHEMA,
    },
    routes: {
      type: 'array',
      description: 'First match wins. Without routes the first upstream serves every model.',
      default: [],
      items: ROUTE_SCHEMA,
    },
    clients: CLIENTS_SCHEMA,
    owner: OWNER_SCHEMA,
    recovery: RECOVERY_SCHEMA,
    breaker: BREAKER_SCHEMA,
    clocks: CLOCKS_SCHEMA,
    checkpoint: CHECKPOINT_SCHEMA,
    resume: RESUME_SCHEMA,
    delivery: DELIVERY_SCHEMA,
    webhooks: WEBHOOKS_SCHEMA,
    limits: LIMITS_SCHEMA,
    faults: FAULTS_SCHEMA,
    status_page: STATUS_SCHEMA,
    tracing: TRACING_SCHEMA,
    metrics: METRICS_SCHEMA,
    log: LOG_SCHEMA,
  },
} as const satisfies Schema & { readonly $schema: string; readonly title: string };
