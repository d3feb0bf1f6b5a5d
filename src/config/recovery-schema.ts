import { choice, flag, integer, milliseconds, section, text, withoutDefault } from './schema-terms.ts';

/** One year. */
export const TTL_S_MAX = 31_536_000;

const shorterTtl = (example_s: number, description: string) =>
  ({ type: 'integer', description, examples: [example_s], minimum: 1, maximum: TTL_S_MAX }) as const;

export const RECOVERY_SCHEMA = section('What Holdfast may do about an interruption.', {
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
  max_attempts: integer(
    4,
    [1, 100],
    'Upstream requests in a row, counted from the last one that made progress and including it. 1 turns recovery off.',
  ),
  same_target_retries: integer(
    1,
    [0, 100],
    'How often a run asks the same target again after a failure that may be transient, before it asks another target of the route.',
  ),
  tool_proof: {
    type: 'integer',
    description:
      'The proof required that a tool call is complete. 1: its arguments satisfy its schema; 2: a later call or text began; 3: the wire says so.',
    default: 1,
    enum: [1, 2, 3],
  },
  drop_repeated_calls: flag(
    false,
    'Drop a tool call with the same name and arguments as a complete one. For models that repeat a call by mistake; other models do it on purpose.',
  ),
  seam: choice(
    'best_effort',
    ['strict', 'best_effort'],
    'What to do with a continuation if nothing shows where it joins the delivered text. `best_effort`: deliver it and say so; `strict`: reject it, and give up if there is no other way to ask.',
  ),
  probe: choice(
    'off',
    ['off', 'on_first_cut'],
    'Whether Holdfast tests how an unknown model continues the beginning of an answer, with a separate request of a few tokens. `on_first_cut`: before it requests the rest of an answer; `off`: the request for the rest finds out.',
  ),
  backoff_ms: milliseconds(500, 'First backoff between attempts; doubles, with full jitter.'),
  backoff_max_ms: milliseconds(8000, 'Cap of the backoff.'),
  retry_after_max_s: integer(
    60,
    [0, 86_400],
    "The longest `Retry-After` that a run waits for. If a target demands more, the run doesn't ask it again: it asks another one, or the client gets the `Retry-After`. Seconds.",
  ),
  retry_after_wait_s: integer(
    0,
    [0, 86_400],
    'The longest `Retry-After` that a run waits for although its route has another target. 0 moves on at once. Seconds.',
  ),
  max_work_tokens: {
    type: 'integer',
    description:
      "How many tokens all attempts of a run may generate; each attempt counts as at least 256. By default four times the request's `max_tokens`, which counts as at least 4096, and as 32768 if it is missing.",
    minimum: 1,
    maximum: 1_000_000_000,
  },
  deadline_ms: withoutDefault(
    milliseconds(
      1,
      "The age at which a run makes no further requests and stops waiting for an answer to begin. It doesn't cut an answer that is arriving. By default there is none; `Holdfast-Deadline-Ms` in a request sets an earlier one.",
    ),
  ),
  unreachable_ms: integer(
    30_000,
    [0, 86_400_000],
    "How long after the last progress failed connections don't count against `max_attempts`, once some of the answer was delivered: the time that a provider has to restart. Milliseconds.",
  ),
  no_progress_ms: milliseconds(600_000, 'Give up when nothing new has been delivered for this long.'),
});

export const BREAKER_SCHEMA = section(
  "When a target counts as down, so that Holdfast asks the route's other targets first.",
  {
    failures: integer(5, [1, 1000], 'Attempts in a row that failed before any output.'),
    failure_percent: integer(
      50,
      [1, 100],
      'Or this share of the last `window` attempts, including those that broke off later. Percent.',
    ),
    window: integer(
      20,
      [1, 1000],
      "The number of attempts that `failure_percent` refers to. With fewer attempts it doesn't apply.",
    ),
    open_ms: milliseconds(
      5000,
      'How long a target that is down gets no requests. After that, Holdfast tests it with one request at a time; the time doubles with each failure.',
    ),
    open_max_ms: milliseconds(
      20_000,
      'Cap of `open_ms`, and the time after which an unanswered test request is followed by another.',
    ),
  },
);

/** A process that is briefly busy must not count as dead. */
const LEASE_MS_MIN = 100;
const COMMAND_MS_MIN = 100;

export const CHECKPOINT_SCHEMA = section('Where Holdfast stores delivered output.', {
  store: {
    type: 'string',
    description:
      '`memory`, `file:` and a directory, `file` for [the state directory](stores.md#files) of the user, or Redis 7 or Valkey: `redis://host:6379/0`, `rediss://…` with TLS, `redis+sentinel://host:26379,host:26379/name/0`, `redis+cluster://host:6379,host:6379`; the last two also as `rediss+…`.',
    default: 'file',
    examples: ['memory', 'file', 'file:/var/lib/holdfast', 'redis://:password@redis:6379/0'],
    minLength: 1,
  },
  durability: choice(
    'interval',
    ['interval', 'write_ahead'],
    '`interval`: a crash may lose the last moments. `write_ahead`: Holdfast delivers a delta only once it is stored, and an unresponsive store holds it back.',
  ),
  interval_ms: milliseconds(
    100,
    'Longest wait before Holdfast stores delivered output. It asks a slow store less often, down to a tenth as often.',
  ),
  lease_ms: {
    ...milliseconds(
      3000,
      'After this long without a sign of life, a replica counts as dead, and others take its runs over. It gives three in that time.',
    ),
    minimum: LEASE_MS_MIN,
  },
  command_ms: {
    ...milliseconds(
      1000,
      'Redis only. A command without an answer for this long has failed, and Holdfast closes a connection that is silent for twice as long. If Redis is far away, raise it, and `lease_ms` to three times as much.',
    ),
    minimum: COMMAND_MS_MIN,
  },
  rewritable_bytes: integer(
    32_768,
    [0, 16_777_216],
    "Redis only. How much of each current run's stored data a replica keeps in memory, to store it again if Redis loses it. The default is enough for an answer of a few thousand tokens. Bytes.",
  ),
  replication: section(
    'Redis only, but not for a cluster. With an asynchronous replica, a failover may lose a takeover that Redis had acknowledged.',
    {
      wait_replicas: integer(
        0,
        [0, 10],
        "How many Redis replicas must have a lease, by `WAIT`, before a run begins or is taken over. If they don't have it in time, the run isn't taken over, and a new one has no journal until they do.",
      ),
      wait_ms: milliseconds(500, 'Longest wait for them.'),
    },
  ),
  on_unreachable: choice(
    'fail',
    ['fail', 'warn'],
    "What to do if the store can't be reached. `fail`: the process doesn't start, and later `/readyz` answers 503. `warn`: it serves without checkpoints until it can reach the store, and `/readyz` says so with a 200.",
  ),
  sealing_keys: {
    type: 'array',
    description:
      'Secrets of 32 characters or more. Holdfast encrypts stored data with the first (AES-256-GCM) and reads it with any, so put a new key in front, and remove an old one after `ttl_s`. Without keys, every process that can read the store can read the output.',
    default: [],
    uniqueItems: true,
    items: text('A secret.', 32),
  },
  unproven: choice(
    'refuse',
    ['refuse', 'accept'],
    'What to do with stored data without a proof that this deployment stored it, such as data from a version before proofs. `refuse`: treat it as damaged. `accept`: read it, for a migration, during which anyone who can write to the store can forge runs.',
  ),
  ttl_s: integer(
    604_800,
    [1, TTL_S_MAX],
    'How long to keep runs after their end. A current run is kept as long as its replica lives. Seconds.',
  ),
  complete_ttl_s: shorterTtl(
    3600,
    'How long to keep complete runs, if less than `ttl_s`: their clients have the whole answer. Seconds.',
  ),
  ended_task_ttl_s: shorterTtl(
    86_400,
    'How long to keep completed and cancelled tasks, with the runs of their steps, if less than `ttl_s`. The request that ends a task may set another time. Seconds.',
  ),
});

export const RESUME_SCHEMA = section('How a run outlives its client or its replica.', {
  detached_ms: milliseconds(
    60_000,
    'A run with `Holdfast-Resume: 1` continues without its client for this long, then Holdfast cancels it. It cancels every other run at once.',
  ),
  match_requests: flag(
    true,
    "If a request with the same credential repeats one whose replica died, or whose client left, it gets the first one's answer and the rest.",
  ),
  derive_thread: flag(
    true,
    'A request without `Holdfast-Thread` belongs to the thread that its `x-claude-code-session-id`, `thread-id`, `session-id` or `x-session-id` names, or else its `prompt_cache_key`, `conversation`, `metadata.session_id` or `user`.',
  ),
  max_takeovers: integer(
    5,
    [1, 100],
    'Takeovers in a row without progress, after which Holdfast gives a run up: its request may be what kills replicas.',
  ),
  salvage_after_ms: milliseconds(
    60_000,
    'A run whose replica died waits this long for its client before Holdfast finalises it as `recovered_from_partial`.',
  ),
  notices: flag(
    true,
    'The next request of a `Holdfast-Thread` tells the model about an answer that was cut off, and the next request with tool results about a call that was lost.',
  ),
});
