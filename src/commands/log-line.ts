import { isObject } from '../lib/json.ts';
import { endedRun, type Fields, type ShownEvent } from './ended-run.ts';
import { type Paint, printable, type Style } from './terminal.ts';

export interface LogLineOptions {
  readonly paint: Paint;
  /** Includes the stack of each error. */
  readonly stacks: boolean;
}

/** An error as src/lib/log.ts writes it. */
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
/** The message that ends a run. */
const RUN_ENDED = 'run ended';

/**
 * Formats a pino log line for people: `18:05:50.123 warn  interrupted run_… cause=idle_stall`. The result is always a
 * single line, in which the terminal interprets nothing but the colours.
 */
export function logLineText(json: string, options: LogLineOptions): string {
  const { time, ...line } = JSON.parse(json) as Fields;
  const { paint } = options;
  const { text, rest } = (line.msg === RUN_ENDED && endedRun(line, paint)) || event(line, options);
  const fields = Object.entries(rest).map((field) => fieldText(field, paint));
  return [paint(clockText(time), 'dim'), text, ...fields].join(' ');
}

/** Level and message, then error and run, which need no field name. */
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

/** Unquoted unless it could be confused with the next field. */
function valueText(value: unknown): string {
  const told = isLoggedError(value) ? errorText(value) : value;
  const isBare = typeof told === 'string' && /^[^\s"=]+$/.test(told);
  return printable(isBare ? told : JSON.stringify(told));
}

const isLoggedError = (value: unknown): value is LoggedError =>
  isObject(value) && typeof value.type === 'string' && typeof value.message === 'string' && 'stack' in value;

/** For example, `Error: outer, caused by TypeError: inner (ECONNRESET)`. */
function errorText({ type, message, code, cause }: LoggedError): string {
  const isNew = typeof code === 'string' && !message.includes(code);
  const text = `${type}: ${message}${isNew ? ` (${code})` : ''}`;
  if (cause === undefined) return text;
  return `${text}, caused by ${isLoggedError(cause) ? errorText(cause) : valueText(cause)}`;
}

/** The frames of a stack on one line. */
const framesOf = ({ stack }: LoggedError): string =>
  (String(stack).match(/^ +at .*$/gm) ?? []).map((frame) => ` ${frame.trim()}`).join('');

/** For example, `18:05:50.123`, in local time. */
function clockText(time: unknown): string {
  const date = new Date(String(time));
  if (Number.isNaN(date.getTime())) return '?';
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, '0')}`;
}
