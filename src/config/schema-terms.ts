/** The subset of JSON Schema (draft 2020-12) that describes the configuration. */
export interface Schema {
  readonly type:
    | 'object'
    | 'array'
    | 'string'
    | 'integer'
    | 'number'
    | 'boolean'
    | readonly ['integer', 'string'];
  readonly description: string;
  readonly default?: unknown;
  readonly examples?: readonly unknown[];
  readonly enum?: readonly (string | number)[];
  readonly minimum?: number;
  readonly maximum?: number;
  readonly minLength?: number;
  readonly pattern?: string;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly uniqueItems?: boolean;
  readonly items?: Schema;
  readonly required?: readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly propertyNames?: { readonly pattern: string };
  readonly additionalProperties?: false | Schema;
}

/** The longest delay of a Node timer; a longer one would fire at once. */
const TIMER_MS_MAX = 2 ** 31 - 1;
export const PORT_MAX = 65535;

/** Names of upstreams and of HTTP headers. */
export const NAMES = { pattern: '^[A-Za-z][A-Za-z0-9_-]{0,62}$' } as const;

/** A group of related keys, all optional. */
export const section = <const Properties extends Readonly<Record<string, Schema>>>(
  description: string,
  properties: Properties,
) => ({ type: 'object', description, default: {}, additionalProperties: false, properties }) as const;

export const integer = (preset: number, [minimum, maximum]: readonly [number, number], description: string) =>
  ({ type: 'integer', description, default: preset, minimum, maximum }) as const;

export const milliseconds = (preset: number, description: string) =>
  integer(preset, [1, TIMER_MS_MAX], `${description} Milliseconds.`);

export const bytes = (preset: number, minimum: number, description: string) =>
  integer(preset, [minimum, 2 ** 30], `${description} Bytes.`);

export const port = (preset: number, description: string) =>
  integer(
    preset,
    [0, PORT_MAX],
    `${description} 0 picks a free one, which the log line \`listening\` names.`,
  );

/** A number, or a word that stands for one. */
export const integerOr = (
  word: string,
  preset: number,
  [minimum, maximum]: readonly [number, number],
  description: string,
) =>
  ({
    type: ['integer', 'string'],
    description,
    default: preset,
    minimum,
    maximum,
    pattern: `^${word}$`,
  }) as const;

export const flag = (preset: boolean, description: string) =>
  ({ type: 'boolean', description, default: preset }) as const;

export const text = (description: string, minLength = 1) =>
  ({ type: 'string', description, minLength }) as const;

export const choice = <const Values extends readonly string[]>(
  preset: Values[number],
  values: Values,
  description: string,
) => ({ type: 'string', description, default: preset, enum: values }) as const;

/** The same schema without its default. */
export const withoutDefault = <Terms extends Schema>({
  default: _,
  ...schema
}: Terms): Omit<Terms, 'default'> => schema;

export const withoutDefaults = <Properties extends Readonly<Record<string, Schema>>>(
  properties: Properties,
) =>
  Object.fromEntries(Object.entries(properties).map(([name, schema]) => [name, withoutDefault(schema)])) as {
    readonly [Name in keyof Properties]: Omit<Properties[Name], 'default'>;
  };
