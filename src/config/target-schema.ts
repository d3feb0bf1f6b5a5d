import { DIALECT_NAMES } from './dialect-names.ts';
import {
  choice,
  flag,
  integer,
  milliseconds,
  NAMES,
  section,
  text,
  withoutDefault,
  withoutDefaults,
} from './schema-terms.ts';

/** Has no default, because the time to wait for a silent target depends on whether another can replace it. */
const waiting = (description: string, alone_ms: number) =>
  withoutDefault(
    milliseconds(
      alone_ms,
      `${description} By default ${alone_ms}; 30000 where the route has another target to ask, unless the model is known to think; without \`stream\`, and without such a target, \`progress_reasoning_ms\`.`,
    ),
  );

const CLOCKS = {
  connect_ms: milliseconds(10_000, 'Limit on DNS, TCP and TLS together.'),
  first_byte_ms: waiting('Limit on the wait for the first byte of the response.', 120_000),
  first_token_ms: waiting('Limit on the wait for the first token.', 120_000),
  idle_ms: waiting('Limit on silence: no bytes at all.', 90_000),
  progress_ms: milliseconds(300_000, 'Limit on bytes without progress: only pings and comments.'),
  progress_reasoning_ms: milliseconds(
    600_000,
    "The same while the model is reasoning, which many providers don't show.",
  ),
  attempt_ms: milliseconds(1_800_000, 'Limit on a whole attempt.'),
} as const;

export const CLOCKS_SCHEMA = section(
  'When an attempt counts as stalled. Each can be set per upstream as well.',
  CLOCKS,
);

export const UPSTREAM_SCHEMA = {
  type: 'object',
  description: 'A provider, under the name that routes, metrics and the `Holdfast-Upstream` header use.',
  additionalProperties: false,
  required: ['base_url'],
  properties: {
    base_url: {
      type: 'string',
      description:
        "The API's address, with its version path, as for an SDK. Only `http:` and `https:`; no query.",
      examples: ['https://api.openai.com/v1'],
      minLength: 1,
    },
    dialect: {
      type: 'string',
      description:
        'How the provider deviates from the wire. By default the address decides or, if that is unknown, what the server sends; until then it is `generic`. See docs/providers.md.',
      enum: DIALECT_NAMES,
    },
    api_key: {
      type: 'string',
      description:
        "Sent as `Authorization: Bearer`, under `/v1/messages` as `x-api-key`, instead of the client's credential. Without it Holdfast passes the client's own through.",
      examples: [`\${OPENAI_API_KEY}`],
      minLength: 1,
    },
    api_key_file: text(
      "A file with the key, instead of `api_key`. Holdfast reads it every ten seconds; while it can't, it keeps the last key.",
    ),
    api_key_command: {
      type: 'array',
      description:
        'A program and its operands, without a shell. It prints the key, instead of `api_key`: bare, or in JSON as `access_token` (`accessToken`) with `expires_in` or `expires_on`, in seconds. Holdfast runs it again before the key expires, or every five minutes if nothing says when; while it fails, Holdfast keeps the last key. It may take 30 s and print 64 KiB.',
      examples: [['az', 'account', 'get-access-token', '--resource', 'https://cognitiveservices.azure.com']],
      minItems: 1,
      items: text('The program, or an operand.', 0),
    },
    headers: {
      type: 'object',
      description:
        'Headers that are sent with every request, in place of those of the client: `api-key`, `anthropic-beta`. With a credential among them, no credential of a client is sent.',
      propertyNames: NAMES,
      additionalProperties: text('A header for every request. Never printed.'),
    },
    query: {
      type: 'object',
      description:
        'Parameters that are added to the query of every request, in place of those of the client: `api-version`.',
      propertyNames: NAMES,
      additionalProperties: text('A query parameter for every request.', 0),
    },
    responses: {
      type: 'object',
      description: 'What is peculiar to `/v1/responses`.',
      additionalProperties: false,
      properties: {
        background: flag(
          false,
          'Asks for every streamed response with `background` and `store`, unless the request says otherwise: Holdfast then reads a cut answer on from where it was cut, and nothing is generated twice. See docs/recovery.md.',
        ),
      },
    },
    ca_file: text("PEM file of a certificate authority to trust in addition to the system's."),
    client_cert_file: text(
      "PEM file of this server's client certificate, with its intermediate certificates.",
    ),
    client_key_file: text("PEM file of that certificate's private key."),
    proxy: {
      type: 'string',
      description:
        'The HTTP proxy for connections, with a user and password if it wants them. Without it, the environment variables `HTTPS_PROXY`, `HTTP_PROXY` and `NO_PROXY` apply, except for addresses of this machine.',
      examples: ['http://proxy.example.com:3128'],
      minLength: 1,
    },
    clocks: {
      type: 'object',
      description: 'Overrides of `clocks` for this upstream.',
      additionalProperties: false,
      properties: withoutDefaults(CLOCKS),
    },
  },
} as const;

export const ROUTE_SCHEMA = {
  type: 'object',
  description: 'Where requests for a model go.',
  additionalProperties: false,
  required: ['model', 'targets'],
  properties: {
    model: {
      type: 'string',
      description: 'The model name that a client asks for; `*` stands for any characters.',
      examples: ['gpt-*'],
      minLength: 1,
    },
    targets: {
      type: 'array',
      description: 'Upstreams in order of preference.',
      minItems: 1,
      items: {
        type: 'object',
        description: 'One upstream.',
        additionalProperties: false,
        required: ['upstream'],
        properties: {
          upstream: text('Its name under `upstreams`.'),
          model: text("The model name to request there, if it differs from the client's."),
          context_tokens: {
            type: 'integer',
            description:
              'How many tokens the model takes, prompt and answer together. If a request is too long for one target, Holdfast sends it to one with more, if both say how many.',
            minimum: 1,
            maximum: 1_000_000_000,
          },
        },
      },
    },
    non_streaming: choice(
      'recover',
      ['recover', 'pass_through'],
      'Requests without `stream`. `recover`: Holdfast fetches them as a stream, recovers them like one, and answers with one document. `pass_through`: it passes them to the first target unchanged.',
    ),
    tool_calls: {
      type: 'string',
      description: 'When clients see tool calls. By default, `delivery.tool_calls`.',
      enum: ['held', 'live'],
    },
    cache_affinity_ms: integer(
      300_000,
      [0, 86_400_000],
      'Targets that have reported cached tokens of a thread within this time get its requests first. 0: always ask targets in their order. See docs/targets.md.',
    ),
    hedge: {
      type: 'object',
      description:
        'Asks the next target as well where one lets the client wait; the first to speak gives the answer, and the other is cancelled. Every such request is paid for. Needs a second target. See docs/hedging.md.',
      additionalProperties: false,
      properties: {
        after_ms: withoutDefault(
          milliseconds(
            2000,
            'How long to wait for the first token before asking the next target as well. Without it Holdfast asks none before the first token.',
          ),
        ),
        stall_ms: withoutDefault(
          milliseconds(
            2000,
            'How long an answer may stall before Holdfast asks the next target for the rest as well. Without it Holdfast asks none after the first token.',
          ),
        ),
        max_share: {
          type: 'number',
          description: "Hedge at most this share of the route's requests.",
          default: 0.05,
          minimum: 0.001,
          maximum: 1,
        },
      },
    },
    compression: {
      type: 'object',
      description:
        'If a conversation is too long for all targets, a model summarises its middle, and the summary takes its place. Not on `/v1/completions`.',
      additionalProperties: false,
      required: ['upstream', 'model'],
      properties: {
        upstream: text(
          'The upstream that summarises the middle of conversations that are too long for all targets, using chat completions. A name under `upstreams`; setting it turns compression on. See docs/recovery.md.',
        ),
        model: text('The model that summarises.'),
        keep_messages: integer(
          8,
          [1, 1_000_000],
          'At least this many of the last messages, or items, are kept unchanged.',
        ),
        summary_tokens: integer(1024, [64, 1_000_000], 'How long the summary may be.'),
        context_tokens: {
          type: 'integer',
          description:
            'How many tokens the summarising model takes, prompt and summary together. Longer conversations are summarised in several requests, one after the other.',
          minimum: 1024,
          maximum: 1_000_000_000,
        },
        at_share: {
          type: 'number',
          description:
            "If a request is estimated to take more than this share of the first target's `context_tokens`, Holdfast summarises its conversation before it asks a provider. Without it Holdfast summarises only what all targets have refused.",
          minimum: 0.001,
          maximum: 1,
        },
      },
    },
  },
} as const;
