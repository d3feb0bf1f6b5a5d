import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from './run.ts';

const NODE_MODULES = fileURLToPath(new URL('../../node_modules', import.meta.url));

const consumerOf = (client: string) => `
import { resumable, type ResumableOptions, StreamInterruptedError } from '${client}';

const options: ResumableOptions = { endpoints: ['http://127.0.0.1:8080'], fetch: globalThis.fetch };
export const fetch: typeof globalThis.fetch = resumable(options);
export const interruption: Error = new StreamInterruptedError();
// @ts-expect-error: types that were not found would let this pass.
resumable({ endpoint: 'http://127.0.0.1:8080' });
`;

const requiringOf = (client: string) => `
import client = require('${client}');

export const fetch: typeof globalThis.fetch = client.resumable({ maxRetries: 3 });
`;

/** The environments, each with its own types for `fetch`. */
const ENVIRONMENTS = {
  browser: { lib: ['es2024', 'dom', 'dom.iterable'], types: [] },
  node: { lib: ['es2024'], types: ['node'], typeRoots: [join(NODE_MODULES, '@types')] },
};

export type Environment = keyof typeof ENVIRONMENTS;

/** How applications find types: their `module`, its resolution, and the environment. */
export const TYPE_KINDS = [
  ['node16', 'node16', 'node'],
  ['node18', 'node16', 'node'],
  ['node20', 'node16', 'node'],
  ['nodenext', 'nodenext', 'node'],
  ['esnext', 'bundler', 'browser'],
  ['preserve', 'bundler', 'browser'],
  ['commonjs', 'bundler', 'node'],
] as const satisfies readonly (readonly [string, string, Environment])[];

/**
 * Type-checks applications that use `client`, in the project at `project`, which has it installed: an ES module and,
 * unless `resolution` is `bundler`, two CommonJS modules. Throws with the compiler's output.
 */
export async function typeCheck(
  project: string,
  client: string,
  module: string,
  resolution: string,
  environment: Environment,
): Promise<void> {
  const directory = join(project, [module, resolution, environment].join('-'));
  const sources: Record<string, string> =
    resolution === 'bundler'
      ? { 'consumer.ts': consumerOf(client) }
      : {
          'consumer.mts': consumerOf(client),
          'consumer.cts': consumerOf(client),
          'requiring.cts': requiringOf(client),
        };
  const compilerOptions = {
    ...ENVIRONMENTS[environment],
    module,
    moduleResolution: resolution,
    target: 'es2024',
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipDefaultLibCheck: true,
  };
  mkdirSync(directory);
  for (const [name, text] of Object.entries(sources)) writeFileSync(join(directory, name), text);
  writeFileSync(
    join(directory, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: Object.keys(sources) }),
  );
  await run(join(NODE_MODULES, '.bin/tsc'), ['-p', directory], {});
}
