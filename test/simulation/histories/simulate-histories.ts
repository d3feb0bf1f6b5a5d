import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { type Consequences, Deployment } from './deployment.ts';
import { histories } from './history.ts';
import { violationsOf } from './verdict.ts';

/*
 * Tries histories until one violates an invariant: `npm run simulate -- --histories 100000 --seed 7`. Prints the
 * command that reproduces a violation. `--no-shrink` prints the first one found, not the smallest.
 */

const PROGRESS_EVERY = 10_000;

const { values } = parseArgs({
  options: {
    histories: { type: 'string', default: '10000' },
    seed: { type: 'string', default: String(Date.now() % 2 ** 31) },
    path: { type: 'string' },
    shrink: { type: 'boolean', default: true },
  },
  allowNegative: true,
});
const seed = Number(values.seed);
const numRuns = Number(values.histories);
const ends = new Map<string, number>();
const began_ms = performance.now();
let tried = 0;

function count({ clients }: Consequences): void {
  tried++;
  for (const { name, end } of clients) {
    const key = `${name.split(' ')[0]} ${end}`;
    ends.set(key, (ends.get(key) ?? 0) + 1);
  }
  if (tried % PROGRESS_EVERY === 0) console.log(`${tried} histories, ${perMinute()} per minute`);
}

const perMinute = (): number => Math.round((tried / (performance.now() - began_ms)) * 60_000);

const result = await fc.check(
  fc.asyncProperty(histories, async (history) => {
    const consequences = await new Deployment(history).run();
    count(consequences);
    const violations = violationsOf(consequences);
    if (violations.length > 0) throw new Error(violations.join('\n'));
  }),
  { seed, numRuns, endOnFailure: !values.shrink, ...(values.path !== undefined && { path: values.path }) },
);

console.log(`seed ${seed}: ${tried} histories, ${perMinute()} per minute`);
for (const [end, clients] of [...ends].sort(([one], [other]) => one.localeCompare(other)))
  console.log(`  ${end}: ${clients}`);
if (result.failed) {
  const { errorInstance, counterexample, counterexamplePath } = result;
  console.log(`violation: ${errorInstance instanceof Error ? errorInstance.message : String(errorInstance)}`);
  console.log(JSON.stringify(counterexample?.[0], undefined, 1));
  console.log(`again: npm run simulate -- --seed ${seed} --path ${counterexamplePath}`);
  process.exitCode = 1;
}
