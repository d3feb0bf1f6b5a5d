/** The part of JSON Schema (draft 2020-12) the configuration is described in. */
export interface Schema {
  readonly type: 'object' | 'array' | 'string' | 'integer' | 'number' | 'boolean';
  readonly description: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly (string | number)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly uniqueItems?: boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly propertyNames?: { readonly pattern: string };
  readonly additionalProperties?: false | Schema;
}

/** The largest delay a Node timer takes; a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;
const PORT_MAX = 65535;

/** Keys that belong together; all of them may be left out. */
export const section = (description: string, properties: Readonly<Record<string, Schema>>): Schema => ({
  type: 'object',
  description,
  default: {},
  additionalProperties: false,
  properties,
});

export const milliseconds = (preset: number, description: string): Schema => ({
  type: 'integer',
  description: `${description} Milliseconds.`,
  default: preset,
  minimum: 1,
  maximum: TIMER_MS_MAX,
});

/** The same, with no value where none is set. */
export const withoutDefault = ({ default: _, ...schema }: Schema): Schema => schema;

export const bytes = (preset: number, minimum: number, description: string): Schema => ({
  type: 'integer',
  description: `${description} Bytes.`,
  default: preset,
  minimum,
  maximum: 2 ** 30,
});

export const port = (preset: number, description: string): Schema => ({
  type: 'integer',
  description: `${description} 0 picks a free one, which the log line \`listening\` names.`,
  default: preset,
  minimum: 0,
  maximum: PORT_MAX,
});
