import { CLOCKS_SCHEMA } from './clocks-schema.ts';
import { DIALECT_NAMES } from './dialect-names.ts';
import { type Schema, withoutDefault } from './schema-terms.ts';

export const UPSTREAM_SCHEMA: Schema = {
  type: 'object',
  description: 'A provider, under the name that routes, metrics and the `Holdfast-Upstream` header use.',
  additionalProperties: false,
  required: ['base_url'],
  properties: {
    base_url: {
      type: 'string',
      description:
        'Where the API lives, with its version path, as for an SDK. Only `http:` and `https:`; no query.',
      examples: ['https://api.openai.com/v1'],
      minLength: 1,
    },
    dialect: {
      type: 'string',
      description:
        'How the provider deviates from the wire. Without it the address decides, and where that says nothing, what the server sends; until then it is `generic`. See docs/providers.md.',
      enum: DIALECT_NAMES,
    },
    api_key: {
      type: 'string',
      description:
        "Sent as `Authorization: Bearer`, under `/v1/messages` as `x-api-key`, in place of the client's credential. Without it the client's own passes through.",
      examples: [`\${OPENAI_API_KEY}`],
      minLength: 1,
    },
    ca_file: {
      type: 'string',
      description: "PEM file of a certificate authority to trust besides the system's.",
      minLength: 1,
    },
    clocks: {
      type: 'object',
      description: 'Overrides of `clocks` for this upstream.',
      additionalProperties: false,
      properties: Object.fromEntries(
        Object.entries(CLOCKS_SCHEMA).map(([name, schema]) => [name, withoutDefault(schema)]),
      ),
    },
  },
};
