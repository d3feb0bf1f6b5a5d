import { BREAKER_SCHEMA } from './breaker-schema.ts';
import { CLOCKS_SCHEMA } from './clocks-schema.ts';
import { METRICS_SCHEMA } from './metrics-schema.ts';
import { ROUTE_SCHEMA } from './route-schema.ts';
import { bytes, milliseconds, port, type Schema, section, withoutDefault } from './schema-terms.ts';
import { STATUS_SCHEMA } from './status-schema.ts';
import { TRACING_SCHEMA } from './tracing-schema.ts';
import { UPSTREAM_SCHEMA } from './upstream-schema.ts';

/** A process that is busy for a moment is not dead. */
const LEASE_MS_MIN = 100;

/** The one description of the configuration: validation, defaults, environment names and the reference come from it. */
export const CONFIGURATION_SCHEMA: Schema & { readonly $schema: string; readonly title: string } = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'Holdfast configuration',
  type: 'object',
  description: 'Configuration of a Holdfast replica.',
  additionalProperties: false,
  required: ['upstreams'],
  properties: {
    listen: section('Addresses to listen on.', {
      host: {
        type: 'string',
        description: 'Address of the API. `0.0.0.0` is every interface.',
        default: '127.0.0.1',
        minLength: 1,
      },
      admin_host: {
        type: 'string',
        description:
          'Address of the admin port, which asks nobody who they are. Without it, that of `host`, and the loopback address where that is every interface: an admin port is opened to others only when asked for.',
        examples: ['0.0.0.0'],
        minLength: 1,
      },
      port: port(8080, 'Port of the API: `/v1/*` and `/holdfast/v1/*`.'),
      admin_port: port(9090, 'Port of `/metrics`, `/livez`, `/readyz` and the status page.'),
    }),
    secret: {
      type: 'string',
      description:
        'Keys the HMAC that ties a run to the credential of its client. All replicas that share a store need the same. Without it one is generated, and kept beside a file store.',
      examples: [`\${HOLDFAST_SECRET}`],
      minLength: 16,
    },
    upstreams: {
      type: 'object',
      description:
        'Providers by name. The first one serves every model without a route, and everything that is passed through.',
      propertyNames: { pattern: '^[A-Za-z][A-Za-z0-9_-]{0,62}$' },
      additionalProperties: UPSTREAM_SCHEMA,
    },
    routes: {
      type: 'array',
      description: 'First match wins. Without routes the first upstream serves every model.',
      default: [],
      items: ROUTE_SCHEMA,
    },
    recovery: section('What may be done about an interruption.', {
      plans: {
        type: 'array',
        description: 'The plans that may be used.',
        default: ['R1', 'R2', 'R3', 'R4'],
        uniqueItems: true,
        items: {
          type: 'string',
          description:
            '`R1` continue the text, `R2` finish with the closed tool calls, `R3` cut before an open tool call, `R4` start again.',
          enum: ['R1', 'R2', 'R3', 'R4'],
        },
      },
      max_attempts: {
        type: 'integer',
        description:
          'Upstream requests in a row, counted from the last that brought something new, that one included. 1 turns recovery off.',
        default: 4,
        minimum: 1,
        maximum: 100,
      },
      same_target_retries: {
        type: 'integer',
        description:
          'How often, in one run, a target is asked again after a failure that may have been a passing one, before another target of its route is.',
        default: 1,
        minimum: 0,
        maximum: 100,
      },
      tool_proof: {
        type: 'integer',
        description:
          'How well it must be proven that a tool call is complete. 1: its arguments satisfy its schema; 2: a later call or text began; 3: the wire says so.',
        default: 1,
        enum: [1, 2, 3],
      },
      drop_repeated_calls: {
        type: 'boolean',
        description:
          'Drop a tool call whose name and arguments are those of a call that is settled already. For models that say the same call again and again; others mean it.',
        default: false,
      },
      seam: {
        type: 'string',
        description:
          'What to do with a continuation that shows no place where it joins what was delivered. `best_effort`: deliver it and say so; `strict`: reject it, and give up where no other way of asking is left.',
        default: 'best_effort',
        enum: ['strict', 'best_effort'],
      },
      probe: {
        type: 'string',
        description:
          'Whether to find out by a request of its own, with a few tokens, what a model makes of the beginning of an answer, where nothing is known of it. `on_first_cut`: before the rest of an answer is asked for; `off`: by asking for the rest.',
        default: 'off',
        enum: ['off', 'on_first_cut'],
      },
      backoff_ms: milliseconds(500, 'First backoff between attempts; doubles, with full jitter.'),
      backoff_max_ms: milliseconds(8000, 'Cap of the backoff.'),
      retry_after_max_s: {
        type: 'integer',
        description:
          'The longest `Retry-After` of a provider that is waited for. A target that asks for more is not asked again in the run: another one is, or the client is told when to come back. Seconds.',
        default: 60,
        minimum: 0,
        maximum: 86_400,
      },
      retry_after_wait_s: {
        type: 'integer',
        description:
          'The longest `Retry-After` of a target that is waited for although the route has another one. 0 moves at once. Seconds.',
        default: 0,
        minimum: 0,
        maximum: 86_400,
      },
      max_work_tokens: {
        type: 'integer',
        description:
          'Tokens that all attempts of a run may generate, an attempt counting for 256 at least. By default four times the `max_tokens` of the request, which counts as 4096 at least, and as 32768 where there is none.',
        minimum: 1,
        maximum: 1_000_000_000,
      },
      deadline_ms: withoutDefault(
        milliseconds(
          1,
          'The age of a run at which nothing is asked for any more, and nothing is waited for that has not begun. An answer that is coming is not cut. By default there is none; `Holdfast-Deadline-Ms` in a request sets an earlier one.',
        ),
      ),
      no_progress_ms: milliseconds(
        600_000,
        'Give up when nothing new was delivered for this long, counted from the last progress.',
      ),
    }),
    breaker: section(
      'When a target of a route with several counts as down, so that others are asked first.',
      BREAKER_SCHEMA,
    ),
    clocks: section(
      'When an attempt counts as stalled. Each can be set per upstream as well.',
      CLOCKS_SCHEMA,
    ),
    checkpoint: section('Where delivered output is kept.', {
      store: {
        type: 'string',
        description:
          '`memory`, `file:` and a directory, or Redis 7 or Valkey: `redis://host:6379/0`, `rediss://…` with TLS, `redis+sentinel://host:26379,host:26379/name/0`, `redis+cluster://host:6379,host:6379`; the last two also as `rediss+…`.',
        default: 'file:./data',
        examples: ['memory', 'file:/var/lib/holdfast', 'redis://:password@redis:6379/0'],
        minLength: 1,
      },
      durability: {
        type: 'string',
        description:
          '`interval`: a crash may lose the last moments. `write_ahead`: a delta is delivered only once stored.',
        default: 'interval',
        enum: ['interval', 'write_ahead'],
      },
      interval_ms: milliseconds(
        100,
        'Longest wait before delivered output is stored. A store that answers slowly is asked less often, down to a tenth as often.',
      ),
      lease_ms: {
        ...milliseconds(
          3000,
          'A replica that gives no sign of life for this long is taken for dead, and its runs are taken over. It gives three in that time.',
        ),
        minimum: LEASE_MS_MIN,
      },
      on_unreachable: {
        type: 'string',
        description:
          'A store that cannot be reached. `fail`: the process does not start, and later `/readyz` answers 503. `warn`: it serves without checkpoints until the store can be reached, and `/readyz` says so with a 200.',
        default: 'fail',
        enum: ['fail', 'warn'],
      },
      sealing_keys: {
        type: 'array',
        description:
          'Secrets of 32 characters or more. What is stored is encrypted with the first (AES-256-GCM) and can be read with any, so that a new key is put in front and an old one removed after `ttl_s`. Without keys, stored output is readable by whoever can read the store.',
        default: [],
        uniqueItems: true,
        items: { type: 'string', description: 'A secret.', minLength: 32 },
      },
      ttl_s: {
        type: 'integer',
        description: 'How long runs are kept. Seconds.',
        default: 604_800,
        minimum: 1,
        maximum: 31_536_000,
      },
      complete_ttl_s: {
        type: 'integer',
        description:
          'How long complete runs are kept, where that is to be less than `ttl_s`: their clients have the whole answer. Seconds.',
        examples: [3600],
        minimum: 1,
        maximum: 31_536_000,
      },
    }),
    resume: section('How a run outlives its client or its replica.', {
      detached_ms: milliseconds(
        60_000,
        'A run with `Holdfast-Resume: 1` goes on without its client for this long, then it is cancelled. Every other run is cancelled at once.',
      ),
      match_requests: {
        type: 'boolean',
        description:
          'A request that repeats one whose replica died, or whose client left, from the same credential, gets the answer of the first one and the rest of it.',
        default: true,
      },
      derive_thread: {
        type: 'boolean',
        description:
          'A request without `Holdfast-Thread` belongs to the thread that its `x-claude-code-session-id` names, or else its `prompt_cache_key`, `conversation`, `metadata.session_id` or `user`.',
        default: true,
      },
      max_takeovers: {
        type: 'integer',
        description:
          'Takeovers in a row that brought nothing new, after which a run is given up: its request may be what kills replicas.',
        default: 3,
        minimum: 1,
        maximum: 100,
      },
      salvage_after_ms: milliseconds(
        60_000,
        'A run whose replica died waits this long for its client before it is finalised as `recovered_from_partial`.',
      ),
      notices: {
        type: 'boolean',
        description:
          'The next request of a `Holdfast-Thread` tells the model about an answer that was cut off, and the next request with tool results about a call that was lost.',
        default: true,
      },
    }),
    limits: section('What one client or one run may take.', {
      body_bytes: bytes(33_554_432, 1024, 'Largest request body that is held: that of a chat completion.'),
      header_bytes: bytes(16_384, 1024, 'Largest request header section.'),
      run_bytes: bytes(16_777_216, 1024, 'Largest answer of a run.'),
      event_bytes: bytes(4_194_304, 1024, 'Largest single event of a provider.'),
      connections: {
        type: 'integer',
        description: 'Client connections open at once; further ones are closed on arrival.',
        default: 10_000,
        minimum: 1,
        maximum: 1_000_000,
      },
      runs_per_owner: {
        type: 'integer',
        description: 'Runs of one credential that a replica delivers at once; further requests get a 429.',
        default: 1000,
        minimum: 1,
        maximum: 1_000_000,
      },
      header_ms: milliseconds(20_000, 'Time a client has to send its request headers.'),
      request_ms: milliseconds(300_000, 'Time a client has to send a whole request.'),
      keep_alive_ms: milliseconds(72_000, 'Time a connection may stay open without a request.'),
      client_stall_ms: milliseconds(300_000, 'A client that takes nothing for this long loses its run.'),
      drain_ms: milliseconds(25_000, 'Time active runs have to end after SIGTERM.'),
      drain_delay_ms: {
        ...milliseconds(
          5000,
          'The first part of `drain_ms`, in which `/readyz` answers 503 already and new requests are still taken: time for load balancers to notice. There is nothing to wait for where nobody has ever asked for `/readyz`.',
        ),
        minimum: 0,
      },
    }),
    status_page: section('What the status page shows, and to whom.', STATUS_SCHEMA),
    tracing: section('Traces of runs, sent by OTLP over HTTP.', TRACING_SCHEMA),
    metrics: section('What `/metrics` tells besides what it always does.', METRICS_SCHEMA),
    log: section('JSON lines on standard output.', {
      level: {
        type: 'string',
        description: 'The least severe level that is written.',
        default: 'info',
        enum: ['trace', 'debug', 'info', 'warn', 'error', 'silent'],
      },
    }),
  },
};
