import { NAMES, section, text } from './schema-terms.ts';

const TOKEN_CHARACTERS_MIN = 16;

export const OWNER_SCHEMA = section("The owner of a run, if it isn't the credential.", {
  header: {
    type: 'string',
    description:
      'A request header in which a proxy in front names the user. Runs belong to that user, whichever credential comes with the request; without the header, to the credential. It never goes upstream. The proxy must remove it from incoming requests, and only the proxy may reach the API.',
    examples: ['x-auth-request-user'],
    pattern: NAMES.pattern,
  },
  claim: {
    ...text(
      "The claim of a JWT that names its user, for instance `sub`. Every request then needs a JWT as the bearer token of its `Authorization`, signed with a key of `jwks_url`; Holdfast refuses others. Runs belong to the issuer's user, whichever token comes with the request. Not together with `header` or `clients`.",
    ),
    examples: ['sub'],
  },
  jwks_url: {
    ...text("The address of the issuer's public keys, a JWK Set. `https:`, or `http:` on this machine."),
    examples: ['https://login.example.com/.well-known/jwks.json'],
  },
  issuer: {
    ...text('The `iss` that a JWT needs.'),
    examples: ['https://login.example.com'],
  },
  audience: {
    ...text("The `aud` that a JWT needs, alone or as one of several: the issuer's name for this service."),
    examples: ['holdfast'],
  },
});

/** `runs` has no default: if absent, the limit of every owner applies. */
export const CLIENTS_SCHEMA = {
  type: 'array',
  description:
    "The clients that may spend the keys of `upstreams`. If you list any, a request that could spend an upstream's `api_key` needs a client's token, in the header where its SDK puts its key; Holdfast never passes the token on. Runs belong to the client, so a new token for the same name keeps them.",
  default: [],
  items: {
    type: 'object',
    description: 'A client.',
    additionalProperties: false,
    required: ['name', 'token'],
    properties: {
      name: {
        type: 'string',
        description: 'Its name in the log, and as the owner of its runs.',
        pattern: NAMES.pattern,
      },
      token: {
        type: 'string',
        description: "What it sends instead of a provider's key. Never printed.",
        examples: [`\${CHAT_UI_TOKEN}`],
        minLength: TOKEN_CHARACTERS_MIN,
      },
      routes: {
        type: 'array',
        description:
          "The routes it may use, by their `model` in `routes`. It then can't use anything outside of routes, such as passed-through requests without a model. By default, everything.",
        minItems: 1,
        uniqueItems: true,
        items: text('The `model` of a route.'),
      },
      runs: {
        type: 'integer',
        description:
          'How many runs a replica delivers to it at once; further requests get a 429. By default, `limits.runs_per_owner`.',
        minimum: 1,
        maximum: 1_000_000,
      },
    },
  },
} as const;
