/**
 * Shows what Holdfast does: a provider that breaks, Holdfast and the plain OpenAI SDK, each in a process of its own.
 *
 *     npm run demo            all acts
 *     npm run demo -- 1 3     only these
 *
 * Exits with 1 if an answer is not what the provider would have said uncut.
 */
import { ACTS, type Act } from './acts.ts';
import { type Answer, ask } from './answer.ts';
import { isTold, type LogLine, narrated } from './narration.ts';
import { IDLE_MS, type Stage, setStage } from './stage.ts';
import { table } from './table.ts';
import { Terminal } from './terminal.ts';
import { judge, type Performance } from './verdict.ts';

const terminal = new Terminal(process.stdout);

async function main(words: readonly string[]): Promise<void> {
  const acts = chosen(words);
  const stage = await setStage(acts);
  // Ctrl-C reaches the other processes as well.
  process.once('SIGINT', () => void stage.strike().then(() => process.exit(130)));
  process.once('SIGTERM', () => void stage.strike().then(() => process.exit(143)));
  try {
    introduce(stage);
    const performances: Promise<Performance>[] = [];
    for (const act of acts) {
      const played = await play(act, stage);
      // Asked for when the provider has broken as often as it was to: the next request is answered uncut.
      const uncut = ask(stage.provider_url, act);
      uncut.catch(() => {});
      performances.push(uncut.then((answer) => ({ act, uncut: answer, ...played })));
    }
    conclude(await Promise.all(performances));
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

function introduce({ provider_url, holdfast_url }: Stage): void {
  terminal.line(`provider   ${provider_url}   scripted, breaks on purpose`, 'dim');
  terminal.line(`holdfast   ${holdfast_url}    idle_ms: ${IDLE_MS}, else the defaults`, 'dim');
  terminal.line(`client     new OpenAI({ baseURL: '${holdfast_url}' })`, 'dim');
}

/** Asks through Holdfast, showing the answer as it comes and what the log says about it, where it says it. */
async function play(
  act: Act,
  { holdfast, holdfast_url }: Stage,
): Promise<{ readonly answer: Answer; readonly log: readonly LogLine[] }> {
  terminal.heading(`${ACTS.indexOf(act) + 1}  ${act.title}`);
  const log: LogLine[] = [];
  const ended = holdfast.said((line) => line.msg === 'run ended');
  ended.catch(() => {});
  const stop = holdfast.listen((line) => {
    if (!isTold(line)) return;
    const told = line as unknown as LogLine;
    log.push(told);
    const words = narrated(told);
    if (words) terminal.aside(words);
  });
  try {
    const answer = await ask(holdfast_url, act, {
      text: (text) => terminal.text(text),
      call: ({ name, arguments: text }) => terminal.line(`${name}(${text})`, 'cyan'),
    });
    await ended;
    return { answer, log };
  } finally {
    stop();
  }
}

function conclude(performances: readonly Performance[]): void {
  const verdicts = performances.map((performance) => ({ ...performance, ...judge(performance) }));
  terminal.heading('Compared with the same requests to the provider, uncut');
  for (const [number, row] of table(verdicts).entries()) terminal.line(row, number === 0 ? 'dim' : undefined);
  const faults = verdicts.flatMap(({ act, differences }) => differences.map((what) => `${act.model}: ${what}`));
  for (const fault of faults) terminal.line(fault, 'red');
  if (faults.length > 0) process.exitCode = 1;
  else terminal.line('No byte was lost, none came twice.', 'green');
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  process.exitCode = 1;
  process.stderr.write(`\nThe demo failed: ${error instanceof Error ? error.message : String(error)}\n`);
}
