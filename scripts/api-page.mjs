// Generates docs/api.md from the OpenAPI document.
import { STATUS_CODES } from 'node:http';

/** In the order of the page. */
const METHODS = ['get', 'put', 'post', 'delete'];

const nameOf = (reference) => reference.slice('#/components/schemas/'.length);
const anchor = (name) => name.toLowerCase();
const code = (value) => `\`${typeof value === 'string' ? value : JSON.stringify(value)}\``;
const sentence = (text) => (/[.!?]$/.test(text) ? text : `${text}.`);
const cell = (text) => text.replaceAll('|', '\\|');

/** A longer list of values, such as all error codes, has a section of its own. */
const VALUES_MAX = 20;
const PLURALS = { string: 'strings', object: 'objects' };

/** The type of a value and its limits. */
function kind(schema) {
  if (schema.$ref) return `[${nameOf(schema.$ref)}](#${anchor(nameOf(schema.$ref))})`;
  if (schema.const !== undefined) return code(schema.const);
  if (schema.enum?.length > VALUES_MAX) return 'string';
  if (schema.enum) return schema.enum.map(code).join(', ');
  if (schema.anyOf) return schema.anyOf.map(kind).join(' or ');
  if (schema.type === 'null') return code(null);
  if (schema.type === 'array') return `list of ${PLURALS[schema.items.type] ?? kind(schema.items)}`;
  const { type = 'any value', minLength, maxLength, minimum, maximum } = schema;
  const [unit, least, most] =
    type === 'string' ? [' characters', minLength, maxLength] : ['', minimum, maximum];
  if (most !== undefined) return `${type}, ${least === undefined ? 'at most' : `${least} to`} ${most}${unit}`;
  return least === undefined ? type : `${type}, at least ${least}${unit}`;
}

/** The schema inside one that may also be null. */
const beside = (schema) => schema.anyOf?.find(({ type }) => type !== 'null') ?? schema;

function saysOf(schema, isRequired) {
  const { description, default: preset } = { ...beside(schema), ...schema };
  const also = [isRequired ? 'Required.' : '', preset === undefined ? '' : `Default: ${code(preset)}.`];
  return [description ?? beside(schema).description ?? '', ...also].filter(Boolean).join(' ');
}

/** One row per field, followed by the rows of the fields inside it. */
function fieldRows(schema, path = '', showsRequired = false) {
  return Object.entries(schema.properties ?? {}).flatMap(([name, field]) => {
    const at = `${path}${name}`;
    const isRequired = showsRequired && (schema.required ?? []).includes(name);
    const inner = beside(field);
    const row = `| ${code(at)} | ${cell(kind(field))} | ${cell(saysOf(field, isRequired))} |`;
    const within = inner.items?.properties
      ? fieldRows(inner.items, `${at}[].`, showsRequired)
      : fieldRows(inner, `${at}.`, showsRequired);
    return [row, ...within];
  });
}

const fields = (schema, showsRequired = false) => [
  '| field | value | |',
  '|---|---|---|',
  ...fieldRows(schema, '', showsRequired),
];

const content = ({ content: types }) => Object.entries(types ?? {})[0] ?? [];

/** Turns `cancelRunOfKey` into `Cancel run of key`. */
function titleOf(operationId) {
  const words = operationId.replace(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
  return words[0].toUpperCase() + words.slice(1);
}

function operation(
  method,
  path,
  { operationId, summary, description, parameters = [], requestBody, responses },
) {
  // The path itself shows its own parameters.
  const others = parameters.filter(({ in: place }) => place !== 'path');
  const [type, answer] = content(responses['200']);
  const errors = Object.keys(responses).filter((status) => Number(status) >= 400);
  const body = requestBody && content(requestBody)[1].schema;
  return [
    `### ${titleOf(operationId)}`,
    '',
    `\`${method.toUpperCase()} ${path}\`: ${sentence(summary)}`,
    ...(description ? ['', description] : []),
    ...(others.length > 0
      ? [
          '',
          '| parameter | in | value | |',
          '|---|---|---|---|',
          ...others.map(
            ({ name, in: place, required, schema, description: says }) =>
              `| ${code(name)} | ${place} | ${cell(kind(schema))} | ${cell(saysOf({ ...schema, description: says }, required))} |`,
          ),
        ]
      : []),
    ...(body
      ? [
          '',
          requestBody.required ? 'The body is JSON:' : 'The body is JSON, and may be left out:',
          '',
          ...fields(body, true),
        ]
      : []),
    '',
    `Answers 200 with ${type === 'application/json' ? kind(answer.schema) : `a stream of events (${code(type)})`}. Errors: ${errors.map((status) => `${status} ${STATUS_CODES[status]}`).join(', ')}.`,
    '',
  ].join('\n');
}

function webhook(type, { post: { summary, requestBody } }) {
  const { data } = content(requestBody)[1].schema.properties;
  return [`### \`${type}\``, '', sentence(summary), '', ...fields(data), ''].join('\n');
}

function object(name, schema) {
  const heading = `### ${name}`;
  if (schema.oneOf)
    return [heading, '', 'One of these:', ...schema.oneOf.flatMap((one) => ['', ...fields(one)]), ''].join(
      '\n',
    );
  return [
    heading,
    ...(schema.description ? ['', sentence(schema.description)] : []),
    '',
    ...fields(schema),
    '',
  ].join('\n');
}

export function apiPage({ paths, tags, webhooks, components }) {
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    METHODS.filter((method) => methods[method]).map((method) => [method, path, methods[method]]),
  );
  const ofTag = ({ name, description }) => [
    `## ${name[0].toUpperCase()}${name.slice(1)}`,
    '',
    description,
    '',
    ...operations
      .filter(([, , { tags: names }]) => names.includes(name))
      .sort(([, one], [, other]) => (one < other ? -1 : one > other ? 1 : 0))
      .map((each) => operation(...each)),
  ];
  const [first] = Object.values(webhooks);
  return `# HTTP API

<!-- Generated by scripts/generate-reference.mjs from src/proxy/api/openapi*.ts and scripts/api-page.mjs; edit those instead. -->

Runs and tasks over HTTP. The same as an [OpenAPI document](../holdfast.openapi.json), which each replica serves at \`/holdfast/v1/openapi.json\`. The
APIs of OpenAI and Anthropic under \`/v1\` are not repeated here: [Recovery](recovery.md) says what Holdfast adds to them.

You see the runs and tasks of your own credential. Send the same key that you send with your requests, in \`Authorization\` or in \`x-api-key\`:

\`\`\`sh
curl -H "authorization: Bearer $OPENAI_API_KEY" http://127.0.0.1:8080/holdfast/v1/runs
\`\`\`

Every error is an [Error](#error). [Troubleshooting](troubleshooting.md#error-codes) says what each \`code\` means and what to do. Lists come in pages: pass the \`next\` of
one as the \`after\` of the next. Later versions may add fields.

${tags.flatMap(ofTag).join('\n')}
## Webhooks

What Holdfast sends to [your endpoints](webhooks.md): a \`type\`, a \`timestamp\`, and \`data\` with the fields below.

${fields({
  properties: Object.fromEntries(
    first.post.parameters.map(({ name, description, schema }) => [name, { ...schema, description }]),
  ),
})
  .join('\n')
  .replace('| field | value | |', '| header | value | |')}

${Object.entries(webhooks)
  .map(([type, of]) => webhook(type, of))
  .join('\n')}
## Objects

${Object.entries(components.schemas)
  .map(([name, schema]) => object(name, schema))
  .join('\n')}`;
}
