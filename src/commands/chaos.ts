import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { ChaosProxy } from '../chaos/chaos-proxy.ts';
import { InvalidOption, parseFaults, parseSeed, parseShare, SEED_MAX } from '../chaos/grammar.ts';
import { faultDocument, faultLine, totalsLine } from '../chaos/report.ts';
import type { Schedule } from '../chaos/schedule.ts';
import { PORT_MAX } from '../config/schema-terms.ts';
import { systemTime } from '../lib/time.ts';
import { createUndiciTransport } from '../proxy/upstream/undici-transport.ts';
import { type Invocation, UsageError } from './command.ts';
import { printable, printJsonLine } from './terminal.ts';

const DEFAULT_HOST = '127.0.0.1';
const DEFAULT_PORT = '8081';
const SIGNALS = ['SIGTERM', 'SIGINT', 'SIGHUP'] as const;

/** Runs the proxy until the first signal. */
export async function run(invocation: Invocation): Promise<void> {
  const upstream = upstreamOf(invocation);
  const schedule = scheduleOf(invocation);
  const { seed } = schedule;
  const print = invocation.switches.has('json')
    ? (document: object) => printJsonLine(document)
    : (_document: object, line: string) => void process.stdout.write(`${printable(line)}\n`);
  const transport = createUndiciTransport();
  const proxy = new ChaosProxy({
    upstream,
    schedule,
    transport,
    time: systemTime,
    onFault: (report) => print(faultDocument(report, seed), faultLine(report, seed)),
  });
  const stopped = Promise.race(SIGNALS.map((signal) => once(process, signal)));
  const url = await listen(proxy, invocation);
  print(
    { event: 'listening', url, upstream: upstream.href, seed },
    `listening on ${url} in front of ${upstream.href}, seed ${seed}`,
  );
  await stopped;
  await proxy.close();
  await transport.close();
  print({ event: 'totals', ...proxy.totals, seed }, totalsLine(proxy.totals, seed));
}

function upstreamOf({ values: { upstream } }: Invocation): URL {
  if (upstream === undefined)
    throw new UsageError('chaos needs an upstream: holdfast chaos --upstream https://api.example.com/v1');
  const url = URL.canParse(upstream) ? new URL(upstream) : undefined;
  // Command lines are visible to every user of the machine. The errors don't repeat the URL, because even an invalid
  // one may contain a key.
  if (url && (url.username !== '' || url.password !== ''))
    throw new UsageError('--upstream: must have no credentials in it; those of the requests are passed on.');
  if (!url || !/^https?:$/.test(url.protocol) || url.search !== '' || url.hash !== '')
    throw new UsageError('--upstream: must be an http:// or https:// address without a query.');
  return url;
}

function scheduleOf({ values: { share = '100%', seed }, lists }: Invocation): Schedule {
  const { cut = [], stall = [], error = [] } = lists;
  if (cut.length + stall.length + error.length === 0)
    throw new UsageError('chaos needs a fault: --cut, --stall or --error, e.g. --cut reset@40%');
  return orUsageError(() => ({
    faults: parseFaults({ cut, stall, error }),
    share: parseShare(share),
    seed: seed === undefined ? randomInt(SEED_MAX) : parseSeed(seed),
  }));
}

function orUsageError<Parsed>(parse: () => Parsed): Parsed {
  try {
    return parse();
  } catch (error) {
    throw error instanceof InvalidOption ? new UsageError(error.message) : error;
  }
}

async function listen(
  proxy: ChaosProxy,
  { values: { host = DEFAULT_HOST, port = DEFAULT_PORT } }: Invocation,
): Promise<string> {
  if (!/^\d{1,5}$/.test(port) || Number(port) > PORT_MAX)
    throw new UsageError(`--port: must be an integer from 0 to ${PORT_MAX}, not ${JSON.stringify(port)}.`);
  try {
    return await proxy.listen(host, Number(port));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new UsageError(`--port: cannot listen on ${host} port ${port} (${code}).`);
  }
}
