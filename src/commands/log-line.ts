import { isObject } from '../lib/json.ts';
import { endedRun, type Fields, type ShownEvent } from './ended-run.ts';
import { type Paint, printable, type Style } from './terminal.ts';

export interface LogLineOptions {
  readonly paint: Paint;
  /** Says of an error where it was thrown. */
  readonly stacks: boolean;
}

/** An error, as src/lib/log.ts writes it. */
interface LoggedError {
  readonly type: string;
  readonly message: string;
  readonly code?: unknown;
  readonly stack?: unknown;
  readonly cause?: unknown;
}

const LEVEL_WIDTH = 5;
const LEVEL_STYLES: ReadonlyMap<string, Style> = new Map([
  ['warn', 'yellow'],
  ['error', 'red'],
  ['fatal', 'red'],
]);
/** What the log calls the end of a run. */
const RUN_ENDED = 'run ended';

/**
 * One line of the log, `json` as pino writes it, for people: `18:05:50.123 warn  interrupted run_… cause=idle_stall`.
 * Whatever its fields say, the text is one line, and nothing in it but its colours is obeyed by a terminal.
 */
export function logLineText(json: string, options: LogLineOptions): string {
  const { time, ...line } = JSON.parse(json) as Fields;
  const { paint } = options;
  const { text, rest } = (line.msg === RUN_ENDED && endedRun(line, paint)) || event(line, options);
  const fields = Object.entries(rest).map((field) => fieldText(field, paint));
  return [paint(clockText(time), 'dim'), text, ...fields].join(' ');
}

/** The level and what happened; then the error and the run that it is about, which have no need of a name. */
function event({ level, msg, run, err, ...others }: Fields, { paint, stacks }: LogLineOptions): ShownEvent {
  const name = String(level);
  const error = isLoggedError(err) ? `: ${errorText(err)}${stacks ? framesOf(err) : ''}` : '';
  const text = [
    paint(printable(name.padEnd(LEVEL_WIDTH)), LEVEL_STYLES.get(name) ?? 'dim'),
    printable(`${msg}${error}`),
    ...(run === undefined ? [] : [paint(valueText(run), 'bold')]),
  ].join(' ');
  return { text, rest: error !== '' || err === undefined ? others : { err, ...others } };
}

const fieldText = ([name, value]: readonly [string, unknown], paint: Paint): string =>
  `${paint(`${printable(name)}=`, 'dim')}${valueText(value)}`;

/** As it is, where nothing in it could be taken for the next field. */
function valueText(value: unknown): string {
  const told = isLoggedError(value) ? errorText(value) : value;
  const isBare = typeof told === 'string' && /^[^\s"=]+$/.test(told);
  return printable(isBare ? told : JSON.stringify(told));
}

const isLoggedError = (value: unknown): value is LoggedError =>
  isObject(value) && typeof value.type === 'string' && typeof value.message === 'string' && 'stack' in value;

/** `Error: outer, caused by TypeError: inner (ECONNRESET)` */
function errorText({ type, message, code, cause }: LoggedError): string {
  const isNew = typeof code === 'string' && !message.includes(code);
  const text = `${type}: ${message}${isNew ? ` (${code})` : ''}`;
  if (cause === undefined) return text;
  return `${text}, caused by ${isLoggedError(cause) ? errorText(cause) : valueText(cause)}`;
}

/** The lines of a stack that name a place, as one. */
const framesOf = ({ stack }: LoggedError): string =>
  (String(stack).match(/^ +at .*$/gm) ?? []).map((frame) => ` ${frame.trim()}`).join('');

/** `18:05:50.123`, where this machine is. */
function clockText(time: unknown): string {
  const date = new Date(String(time));
  if (Number.isNaN(date.getTime())) return '?';
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}
