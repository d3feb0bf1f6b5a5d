import { choice, flag, integer, milliseconds, section, text, withoutDefault } from './schema-terms.ts';

/** A year. */
export const TTL_S_MAX = 31_536_000;

const shorterTtl = (example_s: number, description: string) =>
  ({ type: 'integer', description, examples: [example_s], minimum: 1, maximum: TTL_S_MAX }) as const;

export const RECOVERY_SCHEMA = section('What may be done about an interruption.', {
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
      'How well it must be proven that a tool call is complete. 1: its arguments satisfy its schema; 2: a later call or text began; 3: the wire says so.',
    default: 1,
    enum: [1, 2, 3],
  },
  drop_repeated_calls: flag(
    false,
    'Drop a tool call that has the name and the arguments of a settled call. For models that repeat a call by mistake; other models repeat one on purpose.',
  ),
  seam: choice(
    'best_effort',
    ['strict', 'best_effort'],
    'What to do with a continuation that shows no place where it joins what was delivered. `best_effort`: deliver it and say so; `strict`: reject it, and give up where no other way of asking is left.',
  ),
  probe: choice(
    'off',
    ['off', 'on_first_cut'],
    'Whether a separate request of a few tokens finds out how a model of which nothing is known continues the beginning of an answer. `on_first_cut`: before the rest of an answer is requested; `off`: the request for the rest finds out.',
  ),
  backoff_ms: milliseconds(500, 'First backoff between attempts; doubles, with full jitter.'),
  backoff_max_ms: milliseconds(8000, 'Cap of the backoff.'),
  retry_after_max_s: integer(
    60,
    [0, 86_400],
    'The longest `Retry-After` of a provider that a run waits for. A target that demands more is not asked again in the run: another one is, or the client gets the `Retry-After`. Seconds.',
  ),
  retry_after_wait_s: integer(
    0,
    [0, 86_400],
    'The longest `Retry-After` of a target that a run waits for although its route has another target. 0 moves at once. Seconds.',
  ),
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
      'The age of a run at which it makes no further request and waits for no answer that has not begun. An answer that is arriving is not cut. By default there is none; `Holdfast-Deadline-Ms` in a request sets an earlier one.',
    ),
  ),
  unreachable_ms: integer(
    30_000,
    [0, 86_400_000],
    'For how long after the last progress a connection that cannot be made does not count against `max_attempts`, once some of the answer was delivered: the time that a provider has to restart. Milliseconds.',
  ),
  no_progress_ms: milliseconds(
    600_000,
    'Give up when nothing new was delivered for this long, counted from the last progress.',
  ),
});

export const BREAKER_SCHEMA = section(
  'When a target counts as down, so that the other targets of its route are asked first.',
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
      'How many attempts `failure_percent` is a share of. With fewer attempts it does not apply.',
    ),
    open_ms: milliseconds(
      5000,
      'How long a target that is down gets no requests. After that, one request at a time finds out whether it works again; the time doubles with each failure.',
    ),
    open_max_ms: milliseconds(
      20_000,
      'Cap of `open_ms`, and the time after which a request that finds out, and has no answer yet, is followed by another.',
    ),
  },
);

/** A process that is busy for a moment is not dead. */
const LEASE_MS_MIN = 100;
const COMMAND_MS_MIN = 100;

export const CHECKPOINT_SCHEMA = section('Where delivered output is kept.', {
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
    '`interval`: a crash may lose the last moments. `write_ahead`: a delta is delivered only once stored, and a store that does not answer holds it back.',
  ),
  interval_ms: milliseconds(
    100,
    'Longest wait before delivered output is stored. A store that answers slowly is asked less often, down to a tenth as often.',
  ),
  lease_ms: {
    ...milliseconds(
      3000,
      'A replica without a sign of life for this long counts as dead, and its runs are taken over. It gives three in that time.',
    ),
    minimum: LEASE_MS_MIN,
  },
  command_ms: {
    ...milliseconds(
      1000,
      'Redis only. A command that was not answered for this long has failed, and a connection on which nothing came for twice as long is given up. Raise it, and `lease_ms` to three times as much, for a Redis that is far away.',
    ),
    minimum: COMMAND_MS_MIN,
  },
  rewritable_bytes: integer(
    32_768,
    [0, 16_777_216],
    'Redis only. How much of what was stored of each run under way its replica keeps in memory, the latest of it, to store it again if Redis loses it. The default is enough for an answer of a few thousand tokens. Bytes.',
  ),
  replication: section(
    'Redis only, but not for a cluster. With an asynchronous replica, a failover may lose a takeover that Redis had acknowledged.',
    {
      wait_replicas: integer(
        0,
        [0, 10],
        'Replicas of Redis that have to have a lease, by `WAIT`, before a run is begun or taken over. If they do not have it in time, the run is not taken over, and a new one has no journal until they do.',
      ),
      wait_ms: milliseconds(500, 'Longest wait for them.'),
    },
  ),
  on_unreachable: choice(
    'fail',
    ['fail', 'warn'],
    'A store that cannot be reached. `fail`: the process does not start, and later `/readyz` answers 503. `warn`: it serves without checkpoints until the store can be reached, and `/readyz` says so with a 200.',
  ),
  sealing_keys: {
    type: 'array',
    description:
      'Secrets of 32 characters or more. What is stored is encrypted with the first (AES-256-GCM) and can be read with any, so that a new key is put in front and an old one removed after `ttl_s`. Without keys, every process that can read the store can read the output.',
    default: [],
    uniqueItems: true,
    items: text('A secret.', 32),
  },
  unproven: choice(
    'refuse',
    ['refuse', 'accept'],
    'What is stored without a proof that this deployment has stored it, such as what a version before proofs has. `refuse`: it is treated as damaged. `accept`: it is read, for the time of a migration, in which a writer of the store can forge runs.',
  ),
  ttl_s: integer(
    604_800,
    [1, TTL_S_MAX],
    'How long runs are kept after their end. A run under way is kept as long as its replica lives. Seconds.',
  ),
  complete_ttl_s: shorterTtl(
    3600,
    'How long complete runs are kept, if less than `ttl_s`: their clients have the whole answer. Seconds.',
  ),
  ended_task_ttl_s: shorterTtl(
    86_400,
    'How long tasks that were completed or cancelled are kept, with the runs of their steps, if less than `ttl_s`. What ends a task may say otherwise. Seconds.',
  ),
});

export const RESUME_SCHEMA = section('How a run outlives its client or its replica.', {
  detached_ms: milliseconds(
    60_000,
    'A run with `Holdfast-Resume: 1` continues without its client for this long, then it is cancelled. Every other run is cancelled at once.',
  ),
  match_requests: flag(
    true,
    'A request that repeats one of the same credential whose replica died, or whose client left, gets the answer to the first one and the rest of it.',
  ),
  derive_thread: flag(
    true,
    'A request without `Holdfast-Thread` belongs to the thread that its `x-claude-code-session-id`, `thread-id`, `session-id` or `x-session-id` names, or else its `prompt_cache_key`, `conversation`, `metadata.session_id` or `user`.',
  ),
  max_takeovers: integer(
    5,
    [1, 100],
    'Takeovers in a row without progress, after which a run is given up: its request may be what kills replicas.',
  ),
  salvage_after_ms: milliseconds(
    60_000,
    'A run whose replica died waits this long for its client before it is finalised as `recovered_from_partial`.',
  ),
  notices: flag(
    true,
    'The next request of a `Holdfast-Thread` tells the model about an answer that was cut off, and the next request with tool results about a call that was lost.',
  ),
});
