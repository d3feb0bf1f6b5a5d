import { parseArgs } from 'node:util';
import { PORTKEY_VARIABLE } from './proxies/portkey.ts';
import { isRow, ROW_NAMES, ROWS, type Row } from './rows.ts';

const rowsText = ROW_NAMES.map((row) => `  ${row.padEnd(12)}${ROWS[row]}`).join('\n');

export const USAGE = `npm run bench -- [row …] [options]

Compares Holdfast, started without flags and with the defaults of its configuration, to a bare node:http pipe, to nginx
and to no proxy at all. All targets of a row are measured in turn, round after round, so that ratios hold on a busy
machine. Short answers are compared to LiteLLM too where \`litellm\` is installed, and to Portkey where
${PORTKEY_VARIABLE} names the folder of the package @portkey-ai/gateway.

rows (default: all)
${rowsText}

options
  --store STORE           of Holdfast: file, memory, redis (a server of its own) or redis://…, with ,write_ahead at the end
                          for that durability; again to measure several side by side, budgets being about the first
                          (default: file, and memory beside it)
  --before CLONE          also the build in this clone, with the first store: what a change costs, within one run
  --rounds N              rounds over all targets (default 3, with --full 5)
  --window-seconds N      measured time per round and target (default 3, with --full 10)
  --streams N             of spread and bursts (default 200)
  --events-per-second N   of each of them (default 50)
  --full                  longer windows and more rounds
  --save                  write bench/results/latest.json and latest.svg; needs all rows
  --assert                exit with 1 unless every budget that was measured is met
  --help                  this text`;

export interface Options {
  readonly rows: readonly Row[];
  readonly stores: readonly string[];
  /** Folder of a clone with the build to compare with. */
  readonly before: string | undefined;
  readonly rounds: number;
  readonly window_ms: number;
  readonly streams: number;
  readonly events_per_s_each: number;
  readonly save: boolean;
  readonly assert: boolean;
  readonly help: boolean;
}

/** Throws a `TypeError` that names the wrong word. */
export function readOptions(words: string[]): Options {
  const { values, positionals } = parseArgs({
    args: words,
    allowPositionals: true,
    options: {
      store: { type: 'string', multiple: true, default: ['file', 'memory'] },
      before: { type: 'string' },
      rounds: { type: 'string' },
      'window-seconds': { type: 'string' },
      streams: { type: 'string', default: '200' },
      'events-per-second': { type: 'string', default: '50' },
      full: { type: 'boolean', default: false },
      save: { type: 'boolean', default: false },
      assert: { type: 'boolean', default: false },
      help: { type: 'boolean', default: false },
    },
  });
  const unknown = positionals.find((word) => !isRow(word));
  if (unknown !== undefined) throw new TypeError(`there is no row '${unknown}'`);
  const rows = ROW_NAMES.filter((row) => positionals.length === 0 || positionals.includes(row));
  if (values.save && rows.length < ROW_NAMES.length) throw new TypeError('--save needs all rows');
  const { full } = values;
  return {
    rows,
    stores: values.store,
    before: values.before,
    rounds: positive('--rounds', values.rounds ?? (full ? '5' : '3')),
    window_ms: positive('--window-seconds', values['window-seconds'] ?? (full ? '10' : '3')) * 1000,
    streams: positive('--streams', values.streams),
    events_per_s_each: positive('--events-per-second', values['events-per-second']),
    save: values.save,
    assert: values.assert,
    help: values.help,
  };
}

function positive(option: string, text: string): number {
  const value = Number(text);
  if (!(value > 0 && Number.isFinite(value))) throw new TypeError(`${option}: '${text}' is not above 0`);
  return value;
}
