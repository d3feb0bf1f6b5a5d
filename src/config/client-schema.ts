import { NAMES, section, text } from './schema-terms.ts';

const TOKEN_CHARACTERS_MIN = 16;

export const OWNER_SCHEMA = section('The owner of a run, where that is not the credential.', {
  header: {
    type: 'string',
    description:
      'A request header in which a proxy in front names the user who asks. Runs belong to that user, whichever credential comes with the request; without the header, to the credential. It never goes upstream. The proxy must remove what others send in it, and nothing else may reach the API.',
    examples: ['x-auth-request-user'],
    pattern: NAMES.pattern,
  },
  claim: {
    ...text(
      'The claim of a JWT that names its user, `sub` for instance. Then every request needs a JWT as the bearer token of its `Authorization`, signed with a key of `jwks_url`; others are refused. Runs belong to that user of its issuer, whichever token comes with the request. Not with `header` or `clients`.',
    ),
    examples: ['sub'],
  },
  jwks_url: {
    ...text('Where the public keys of the issuer are, as a JWK Set. `https:`, or `http:` on this machine.'),
    examples: ['https://login.example.com/.well-known/jwks.json'],
  },
  issuer: {
    ...text('The `iss` that a JWT needs.'),
    examples: ['https://login.example.com'],
  },
  audience: {
    ...text('The `aud` that a JWT needs, alone or as one of several: this service, as its issuer knows it.'),
    examples: ['holdfast'],
  },
});

/** Without a default for `runs`: where it is left out, the limit of every owner counts. */
export const CLIENTS_SCHEMA = {
  type: 'array',
  description:
    "The clients that may spend the keys of `upstreams`. With any, a request that an upstream's `api_key` could be spent on needs the token of one of them, in whichever header its SDK puts its key; it goes no further than here. Runs belong to the client: a new token for the same name keeps them.",
  default: [],
  items: {
    type: 'object',
    description: 'A client.',
    additionalProperties: false,
    required: ['name', 'token'],
    properties: {
      name: {
        type: 'string',
        description: 'Names it in the log, and as the owner of its runs.',
        pattern: NAMES.pattern,
      },
      token: {
        type: 'string',
        description: 'What it sends where its SDK asks for the key of the provider. Never printed.',
        examples: [`\${CHAT_UI_TOKEN}`],
        minLength: TOKEN_CHARACTERS_MIN,
      },
      routes: {
        type: 'array',
        description:
          'The routes it may use, by their `model` as `routes` has it. Then it may not use what is on no route: all that is passed through without a model. Without this, all.',
        minItems: 1,
        uniqueItems: true,
        items: text('The `model` of a route.'),
      },
      runs: {
        type: 'integer',
        description:
          'Runs that a replica delivers to it at once; further requests get a 429. Without this, `limits.runs_per_owner`.',
        minimum: 1,
        maximum: 1_000_000,
      },
    },
  },
} as const;
