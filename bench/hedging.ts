// Measures what hedging saves and costs: the same requests with and without it, against two providers that stall at
// times.
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import OpenAI from 'openai';
import { RouteDeployment } from '../test/e2e/route-deployment.ts';
import type { Fault } from '../test/provider/fault.ts';
import type { RecordedRequest } from '../test/provider/recorded-request.ts';
import type { Plan } from '../test/provider/script.ts';
import { type Panel, picture } from './picture.ts';
import { quantile } from './statistics.ts';

const USAGE = `node bench/hedging.ts [options]

  --requests N      per column (default 1000)
  --concurrent N    requests at a time (default 30)
  --stalls SHARES   shares of the requests that stall at a provider, for 5 s (default 0.04,0.2)
  --seed N          of what stalls where (default 1)
  --chart           write docs/hedging.svg
  --help            this text`;

const { values: options } = parseArgs({
  options: {
    requests: { type: 'string', default: '1000' },
    concurrent: { type: 'string', default: '30' },
    stalls: { type: 'string', default: '0.04,0.2' },
    seed: { type: 'string', default: '1' },
    chart: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

const HEDGE = { after_ms: 1000, stall_ms: 1000, max_share: 0.05 };
const STALL_MS = 5000;
const WORDS = 40;
const WORD_MS = 10;
const TEXT = Array.from({ length: WORDS }, (_, number) => `word${number}`).join(' ');
/** A wait this long looks like a hang to a reader. */
const HANG_MS = 2000;
const CHARACTERS_PER_TOKEN = 4;
/** Upper limit of attempts per request. */
const ATTEMPTS = 8;
const CHART = join(import.meta.dirname, '../docs/hedging.svg');
/** About 500 tokens. */
const SYSTEM = 'You answer questions about the sea and what lives in it. '.repeat(35);

interface Answer {
  readonly first_token_ms: number;
  /** The longest time without a token after the first one. */
  readonly gap_ms: number;
  readonly isExact: boolean;
}

interface Column {
  readonly name: string;
  readonly stalls: number;
  readonly isHedged: boolean;
  readonly answers: readonly Answer[];
  readonly requests: number;
  /** Tokens that the providers read and generated. */
  readonly tokens: number;
  readonly hedges: Readonly<Record<string, number>>;
}

async function main(): Promise<void> {
  const columns: Column[] = [];
  for (const stalls of options.stalls.split(',').map(Number)) {
    for (const isHedged of [false, true]) {
      const column = await measure(stalls, isHedged);
      columns.push(column);
      console.log(described(column, columns));
    }
  }
  const wrong = columns.flatMap(({ answers }) => answers.filter(({ isExact }) => !isExact)).length;
  if (wrong > 0) process.exitCode = 1;
  if (options.chart) writeFileSync(CHART, chart(columns));
}

async function measure(stalls: number, isHedged: boolean): Promise<Column> {
  const deployment = await RouteDeployment.start({
    '*': {
      upstream: { dialect: 'openai' },
      ...(isHedged && { settings: { hedge: HEDGE } }),
    },
  });
  try {
    const random = generator(options.seed);
    const questions = Array.from({ length: Number(options.requests) }, (_, number) => `Question ${number}?`);
    for (const question of questions)
      deployment.plan(question, { first: planOf(stalls, random), second: planOf(stalls, random) });
    const client = new OpenAI({ baseURL: deployment.holdfast.url, apiKey: 'a key', maxRetries: 0 });
    const answers = await inTurn(questions, Number(options.concurrent), (question) => ask(client, question));
    const made = [...deployment.first.requests, ...deployment.second.requests];
    const metrics = await deployment.holdfast.metrics();
    const counted = (outcome: string) => metrics.get(`holdfast_hedges_total{outcome="${outcome}"}`) ?? 0;
    return {
      name: `${stalls * 100} %${isHedged ? ', hedged' : ' stall'}`,
      stalls,
      isHedged,
      answers,
      requests: made.length,
      tokens: tokensOf(made),
      hedges: Object.fromEntries(['won', 'lost', 'failed', 'denied'].map((each) => [each, counted(each)])),
    };
  } finally {
    await deployment.close();
  }
}

function planOf(stalls: number, random: () => number): Plan {
  const faults = Array.from({ length: ATTEMPTS }, (): Fault | null => {
    if (random() >= stalls) return null;
    const isBeforeFirst = random() < 0.5;
    // The first event carries only the role.
    const event = isBeforeFirst ? 0 : 2 + Math.floor(random() * (WORDS - 4));
    return { kind: 'silence', at: { event }, for_ms: STALL_MS };
  });
  return { parts: [{ text: TEXT }], delay_ms: WORD_MS, continuation: 'obedient', faults };
}

async function ask(client: OpenAI, question: string): Promise<Answer> {
  const asked_ms = performance.now();
  let last_ms = asked_ms;
  const waits_ms: number[] = [];
  let text = '';
  const stream = await client.chat.completions.create({
    model: 'model',
    messages: [
      { role: 'system', content: SYSTEM },
      { role: 'user', content: question },
    ],
    stream: true,
  });
  for await (const { choices } of stream) {
    const content = choices[0]?.delta.content ?? '';
    if (content === '') continue;
    text += content;
    const now_ms = performance.now();
    waits_ms.push(now_ms - last_ms);
    last_ms = now_ms;
  }
  const [first_token_ms = Number.NaN, ...gaps_ms] = waits_ms;
  return { first_token_ms, gap_ms: Math.max(...gaps_ms), isExact: text === TEXT };
}

/** Runs `work` for every item, at most `concurrent` at a time. The results keep the order of `items`. */
async function inTurn<T, R>(
  items: readonly T[],
  concurrent: number,
  work: (item: T) => Promise<R>,
): Promise<R[]> {
  const results: R[] = [];
  const waiting = items.entries();
  const worker = async () => {
    for (const [index, item] of waiting) results[index] = await work(item);
  };
  await Promise.all(Array.from({ length: concurrent }, worker));
  return results;
}

/**
 * Tokens that the providers read, plus those they generated before being cancelled. The longest answer is taken as a
 * whole one.
 */
function tokensOf(requests: readonly RecordedRequest[]): number {
  const whole_bytes = Math.max(...requests.map(({ sent }) => sent.bytes));
  return requests.reduce((sum, { body, sent }) => {
    const { messages } = body as { readonly messages: readonly { readonly content: string }[] };
    const characters = messages.reduce((length, { content }) => length + content.length, 0);
    return sum + characters / CHARACTERS_PER_TOKEN + WORDS * (sent.bytes / whole_bytes);
  }, 0);
}

/** Numbers from 0 to 1. The same seed gives both columns the same numbers. */
function generator(seed: string): () => number {
  let drawn = 0;
  return () => createHash('sha256').update(`${seed} ${drawn++}`).digest().readUInt32BE() / 2 ** 32;
}

function described(
  { name, stalls, answers, requests, tokens, hedges }: Column,
  columns: readonly Column[],
): string {
  const figure = (value: number) => value.toFixed(0).padStart(6);
  const wrong = answers.filter(({ isExact }) => !isExact).length;
  const bare = columns.find((column) => column.stalls === stalls && !column.isHedged);
  const extra = (of: number, base = of) => `${(100 * (of / base - 1)).toFixed(1)} %`;
  const [firsts, gaps] = [sorted(answers, 'first_token_ms'), sorted(answers, 'gap_ms')];
  return `${name}
  first token, ms   p50 ${figure(quantile(firsts, 0.5))}  p99 ${figure(quantile(firsts, 0.99))}  max ${figure(quantile(firsts, 1))}
  longest gap, ms   p50 ${figure(quantile(gaps, 0.5))}  p99 ${figure(quantile(gaps, 0.99))}  max ${figure(quantile(gaps, 1))}
  waits over ${HANG_MS} ms   in ${(100 * hanging(answers)).toFixed(1)} % of the answers
  requests ${requests} (+${extra(requests, bare?.answers.length)}), tokens +${extra(tokens, bare?.tokens)}
  answers ${answers.length}, of which wrong ${wrong}; hedges ${JSON.stringify(hedges)}`;
}

function chart(columns: readonly Column[]): string {
  const panel = (title: string, digits: number, figureOf: (column: Column) => number): Panel => ({
    title,
    digits,
    bars: columns.map((column) => {
      const value = figureOf(column);
      return { name: column.name, value: { median: value, min: value, max: value }, isOwn: column.isHedged };
    }),
    limits: [],
  });
  const tokensWithout = (stalls: number) =>
    columns.find((column) => column.stalls === stalls && !column.isHedged)?.tokens ?? Number.NaN;
  const cost = panel(
    'extra tokens, %',
    1,
    ({ stalls, tokens }) => 100 * (tokens / tokensWithout(stalls) - 1),
  );
  const limit = { at: 100 * HEDGE.max_share, text: `max_share ${HEDGE.max_share}` };
  return picture(
    [
      panel('first token, p99, ms', 0, ({ answers }) => quantile(sorted(answers, 'first_token_ms'), 0.99)),
      panel('longest gap in an answer, p99, ms', 0, ({ answers }) =>
        quantile(sorted(answers, 'gap_ms'), 0.99),
      ),
      panel(`answers with a wait over ${HANG_MS / 1000} s, %`, 1, ({ answers }) => 100 * hanging(answers)),
      { ...cost, limits: [limit] },
    ],
    {
      heading: 'What hedging saves, and what it costs',
      circumstances: `${options.requests} answers each; two providers that stall for ${STALL_MS / 1000} s, half of the time before the first token`,
      label: 'Waits with and without hedging, and the tokens that it takes',
      footnote: `hedge: { after_ms: ${HEDGE.after_ms}, stall_ms: ${HEDGE.stall_ms}, max_share: ${HEDGE.max_share} }. ${new Date().toISOString().slice(0, 10)}`,
    },
  );
}

const sorted = (answers: readonly Answer[], figure: 'first_token_ms' | 'gap_ms'): number[] =>
  answers.map((answer) => answer[figure]).toSorted((left, right) => left - right);

/** Share of answers with a wait that looks like a hang to the reader. */
const hanging = (answers: readonly Answer[]): number =>
  answers.filter(({ first_token_ms, gap_ms }) => Math.max(first_token_ms, gap_ms) > HANG_MS).length /
  answers.length;

if (options.help) console.log(USAGE);
else await main();
