// Rehearses a rolling update, an eviction or both at production settings, behind a real load balancer.
import { parseArgs } from 'node:util';
import { debianProgram } from '../test/debian-program.ts';
import { redisBinary, type ServerBinary } from '../test/redis/binaries.ts';
import { rehearseEviction, rehearseRollout } from '../test/rehearsal/rehearsal.ts';
import type { Findings } from '../test/rehearsal/scene.ts';
import { CLI_PATH } from './proxies/holdfast.ts';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    streams: { type: 'string', default: '500' },
    'drain-ms': { type: 'string', default: '25000' },
    'drain-delay-ms': { type: 'string', default: '5000' },
    'grace-ms': { type: 'string', default: '10000' },
    'answer-ms-min': { type: 'string', default: '20000' },
    'answer-ms-max': { type: 'string', default: '60000' },
    'event-ms': { type: 'string', default: '400' },
    'newcomers-per-second': { type: 'string', default: '20' },
  },
});

const ARRIVAL_MS = 5000;
const CHECK_INTERVAL_MS = 1000;
const SALVAGE_AFTER_MS = 60_000;
/** Long lists of faults are usually repetitive. */
const FAULTS_SHOWN = 20;

const started_ms = performance.now();
process.env.HOLDFAST_CLI ??= CLI_PATH;
const options = {
  redis: pathOf(await redisBinary()),
  haproxy: pathOf(await debianProgram('haproxy')),
  drain_ms: Number(values['drain-ms']),
  drain_delay_ms: Number(values['drain-delay-ms']),
  check_interval_ms: CHECK_INTERVAL_MS,
  salvage_after_ms: SALVAGE_AFTER_MS,
  streams: Number(values.streams),
  answer_ms_min: Number(values['answer-ms-min']),
  answer_ms_max: Number(values['answer-ms-max']),
  event_ms: Number(values['event-ms']),
  arrival_ms: ARRIVAL_MS,
  newcomer_interval_ms: 1000 / Number(values['newcomers-per-second']),
  report: (what: string) => console.log(`${seconds(performance.now() - started_ms).padStart(8)}  ${what}`),
};
const grace_ms = Number(values['grace-ms']);

const isWanted = (part: 'rollout' | 'eviction') => positionals.length === 0 || positionals.includes(part);
if (isWanted('rollout')) {
  console.log(`A rolling update with ${options.streams} streams, drain_ms ${options.drain_ms}`);
  show(await rehearseRollout(options));
}
if (isWanted('eviction')) {
  console.log(`\nAn eviction with ${options.streams} streams on one replica, SIGKILL after ${grace_ms} ms`);
  show(await rehearseEviction({ ...options, grace_ms }));
}

function show({ clients, newcomers, open, logs, balancer, duration_ms, faults }: Findings): void {
  console.log(`\nstreams open when replicas were told to go: ${open.join(', ')}`);
  for (const [kind, { whole, cut, cut_after_ms, faults }] of clients) {
    const cuts = cut === 0 ? 'none cut' : `${cut} cut, the first after ${seconds(cut_after_ms)}`;
    console.log(`${kind}: ${whole} answers whole, ${cuts}, ${faults.length} wrong`);
  }
  console.log(
    `new short requests: ${newcomers.count}, of which ${newcomers.overtaken} took as long as a drain; answers with a 5xx: ${balancer.errors}`,
  );
  console.log(
    `connections the balancer tried again: ${balancer.retries}, elsewhere: ${balancer.redispatches}`,
  );
  console.log(`journals: ${logs.runs}, moved to another replica or finalised by one: ${logs.moved}`);
  console.log(`duration: ${seconds(duration_ms)}`);
  console.log(faults.length === 0 ? 'PASS' : `FAIL\n  ${faults.slice(0, FAULTS_SHOWN).join('\n  ')}`);
  if (faults.length > 0) process.exitCode = 1;
}

function pathOf(binary: ServerBinary): string {
  if ('missing' in binary) throw new Error(binary.missing);
  return binary.path;
}

function seconds(duration_ms: number): string {
  return `${(duration_ms / 1000).toFixed(1)} s`;
}
