/**
 * Demonstrates Holdfast: a provider that breaks, Holdfast and the plain OpenAI SDK, each in its own process.
 *
 *     npm run demo            all acts
 *     npm run demo -- 1 3     only these
 *
 * Exits with 1 if an answer differs from the provider's uncut one.
 */
import { resumable } from '../src/client/index.ts';
import { isTold, type LogLine, narrated } from '../src/demo/narration.ts';
import { Terminal } from '../src/demo/terminal.ts';
import { ACTS, type Act } from './acts.ts';
import { ask, type Source } from './answer.ts';
import { IDLE_MS, type Stage, setStage } from './stage.ts';
import { table } from './table.ts';
import { judge, type PlayedAct } from './verdict.ts';

const terminal = new Terminal(process.stdout);
let stopping = false;

async function main(words: readonly string[]): Promise<void> {
  const acts = chosen(words);
  const stage = await setStage(acts);
  stopOnSignal(stage);
  try {
    introduce(stage);
    const played: Promise<PlayedAct>[] = [];
    for (const act of acts) {
      const shown = await play(act, stage);
      // The provider has used up its faults, so the same request now gets the uncut answer.
      const whole = ask({ base_url: stage.provider_url }, act).then((uncut) => ({ act, uncut, ...shown }));
      // Errors surface after the last act, when the promise is awaited.
      whole.catch(() => {});
      played.push(whole);
    }
    conclude(await Promise.all(played));
  } finally {
    await stage.strike();
  }
}

function chosen(words: readonly string[]): readonly Act[] {
  if (words.length === 0) return ACTS;
  return words.map((word) => {
    const act = ACTS[Number(word) - 1];
    if (!act) throw new Error(`there is no act ${word}; choose from 1 to ${ACTS.length}`);
    return act;
  });
}

function stopOnSignal(stage: Stage): void {
  for (const [signal, status] of [['SIGINT', 130] as const, ['SIGTERM', 143] as const]) {
    process.once(signal, () => {
      stopping = true;
      void stage.strike().finally(() => process.exit(status));
    });
  }
}

function introduce({ provider_url, replicas }: Stage): void {
  const [{ url }] = replicas;
  const urls = replicas.map((replica) => replica.url).join(' and ');
  terminal.line(`provider   ${provider_url}, scripted to break`, 'dim');
  terminal.line(`holdfast   ${urls}, idle_ms: ${IDLE_MS}, store: file`, 'dim');
  terminal.line(`client     new OpenAI({ baseURL: '${url}' })`, 'dim');
}

/** Requests the answer through Holdfast and shows its log messages at the point in the text where they occur. */
async function play(act: Act, { replicas }: Stage): Promise<Pick<PlayedAct, 'answer' | 'log'>> {
  terminal.heading(`${ACTS.indexOf(act) + 1}  ${act.title}`);
  const log: LogLine[] = [];
  const stops = replicas.map(({ service }) =>
    service.listen((line) => {
      // Processes interrupt each other's streams while they stop.
      if (!isTold(line) || stopping) return;
      log.push(line);
      for (const remark of narrated(line)) terminal.aside(remark);
    }),
  );
  const [first] = replicas;
  // A killed replica can't log that the run ended; its successor does.
  const last = act.killed_at === undefined ? first : (replicas.at(-1) ?? first);
  const ended = last.service.said(({ msg }) => msg === 'run ended');
  // Awaited once the answer is complete. If the answer fails, that error is the one to report.
  ended.catch(() => {});
  let shown = 0;
  const show = (text: string) => {
    terminal.text(text);
    const before = shown;
    shown += text.length;
    const { killed_at = Number.POSITIVE_INFINITY } = act;
    if (before >= killed_at || shown < killed_at) return;
    terminal.aside({ text: '✂ the replica that delivers this is killed', style: 'red' });
    void first.service.kill();
  };
  try {
    const answer = await ask(sourceOf(act, replicas), act, show);
    for (const { name, arguments: text } of answer.calls) terminal.line(`${name}(${text})`, 'cyan');
    await ended;
    return { answer, log };
  } finally {
    for (const stop of stops) stop();
  }
}

/**
 * A single URL suffices while its replica lives. To outlive the replica, the stream needs a second URL and a client
 * that resumes there.
 */
function sourceOf({ killed_at }: Act, replicas: Stage['replicas']): Source {
  const [{ url }] = replicas;
  if (killed_at === undefined) return { base_url: url };
  const endpoints = replicas.map((replica) => replica.url);
  terminal.line(`client     new OpenAI({ baseURL, fetch: resumable({ endpoints }) })`, 'dim');
  return { base_url: url, fetch: resumable({ endpoints }) };
}

function conclude(played: readonly PlayedAct[]): void {
  const acts = played.map((each) => ({ ...each, ...judge(each) }));
  terminal.heading('Compared with the answers of the provider to the same requests, uncut');
  for (const [number, row] of table(acts).entries()) terminal.line(row, number === 0 ? 'dim' : undefined);
  const faults = acts.flatMap(({ act, differences }) => differences.map((what) => `${act.title}: ${what}`));
  for (const fault of faults) terminal.line(fault, 'red');
  if (faults.length > 0) process.exitCode = 1;
  else {
    terminal.line(
      '✔ byte for byte: every text is whole, every call is whole or left out, nothing came twice',
      'green',
    );
  }
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.exitCode = 1;
  const reason = error instanceof Error ? error.message : String(error);
  if (!stopping) process.stderr.write(`\nThe demo failed: ${reason}\n`);
}
