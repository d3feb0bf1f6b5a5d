import { CUTS, ERROR_NAMES, type Fault, type Place, STATUSES } from './fault.ts';

/** Names the option, its wrong value and what it accepts. */
export class InvalidOption extends Error {
  override readonly name = 'InvalidOption';
  /** Without dashes. */
  readonly option: string;
  readonly expected: string;

  constructor(option: string, expected: string, given: string) {
    super(`--${option}: must be ${expected}, not ${JSON.stringify(given)}.`);
    this.option = option;
    this.expected = expected;
  }
}

/** The values of the fault options, in order. */
export type FaultOptions = Readonly<Record<FaultOption, readonly string[]>>;

type FaultOption = keyof typeof PARSERS;

/** Where a fault without a place strikes. */
const DEFAULT_PLACE: Place = { kind: 'percent', percent: 50 };
const FAULTS_MAX = 64;
const CHARACTERS_MAX = 10_000_000;
const STALL_MAX_MS = 3_600_000;
export const SEED_MAX = 2 ** 32 - 1;
const UNITS_MS: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000 };

const PLACES = `start, tool, end, N% of the answer, or N characters up to ${CHARACTERS_MAX}`;
const CUT = `KIND@PLACE, with a KIND of ${CUTS.join(', ')} and a PLACE of ${PLACES}`;
const STALL = `DURATION@PLACE, with a DURATION like 500ms, 5s or 2m of at most an hour and a PLACE of ${PLACES}`;
const ERROR = `NAME@PLACE, with a NAME of ${ERROR_NAMES.join(', ')} and a PLACE of ${PLACES}; or a status of ${STATUSES.join(', ')} without a place`;

const FAULT_LIST = `1 to ${FAULTS_MAX} faults like cut=reset@40%, stall=5s, error=overloaded@tool, with commas between them`;

/** Parses the values of the fault options. Throws an {@link InvalidOption}. */
export function parseFaults({ cut, stall, error }: FaultOptions): readonly Fault[] {
  const faults = [...cut.map(parseCut), ...stall.map(parseStall), ...error.map(parseError)];
  if (faults.length > FAULTS_MAX)
    throw new InvalidOption('cut', `one of at most ${FAULTS_MAX} faults`, `one of ${faults.length}`);
  return faults;
}

const PARSERS = { cut: parseCut, stall: parseStall, error: parseError };

/** Parses `cut=reset@40%, stall=5s`: options without dashes, in order. Throws an {@link InvalidOption}. */
export function parseFaultList(given: string): readonly Fault[] {
  const items = given.split(',').map((item) => item.trim());
  if (items.length > FAULTS_MAX) throw new InvalidOption('', FAULT_LIST, given);
  return items.map((item) => {
    const [, option = '', value = ''] = /^([a-z]+)=(.*)$/.exec(item) ?? [];
    if (!isFaultOption(option)) throw new InvalidOption('', FAULT_LIST, given);
    return PARSERS[option](value);
  });
}

const isFaultOption = (option: string): option is FaultOption => Object.hasOwn(PARSERS, option);

function parseCut(given: string): Fault {
  const { what, place } = placed('cut', CUT, given);
  const cut = CUTS.find((known) => known === what);
  if (!cut) throw new InvalidOption('cut', CUT, given);
  return { kind: 'cut', cut, place };
}

function parseStall(given: string): Fault {
  const { what, place } = placed('stall', STALL, given);
  const [, count = '', unit = ''] = /^(\d{1,7})(ms|s|m)$/.exec(what) ?? [];
  const duration_ms = Number(count) * (UNITS_MS[unit] ?? 0);
  if (duration_ms < 1 || duration_ms > STALL_MAX_MS) throw new InvalidOption('stall', STALL, given);
  return { kind: 'stall', duration_ms, place };
}

function parseError(given: string): Fault {
  const status = STATUSES.find((known) => String(known) === given);
  if (status) return { kind: 'status', status };
  const { what, place } = placed('error', ERROR, given);
  const error = ERROR_NAMES.find((known) => known === what);
  if (!error) throw new InvalidOption('error', ERROR, given);
  return { kind: 'error', error, place };
}

function placed(option: string, expected: string, given: string): { what: string; place: Place } {
  const at = given.indexOf('@');
  if (at === -1) return { what: given, place: DEFAULT_PLACE };
  const place = parsePlace(given.slice(at + 1));
  if (!place) throw new InvalidOption(option, expected, given);
  return { what: given.slice(0, at), place };
}

function parsePlace(text: string): Place | undefined {
  if (text === 'start' || text === 'tool' || text === 'end') return { kind: text };
  const [, digits = '', sign] = /^(\d{1,8})(%?)$/.exec(text) ?? [];
  const count = Number(digits);
  if (digits === '' || count > (sign ? 100 : CHARACTERS_MAX)) return undefined;
  return sign ? { kind: 'percent', percent: count } : { kind: 'characters', characters: count };
}

/** Parses a percentage: `5%` becomes 0.05. Throws an {@link InvalidOption}. */
export function parseShare(given: string): number {
  const [, percent = ''] = /^(\d{1,3}(?:\.\d{1,3})?)%$/.exec(given) ?? [];
  if (percent === '' || Number(percent) > 100)
    throw new InvalidOption('share', 'a percentage like 5% or 0.5%, at most 100%', given);
  return Number(percent) / 100;
}

/** Throws an {@link InvalidOption} unless the text is a seed. */
export function parseSeed(given: string): number {
  const seed = /^\d{1,10}$/.test(given) ? Number(given) : Number.NaN;
  if (!(seed <= SEED_MAX)) throw new InvalidOption('seed', `an integer from 0 to ${SEED_MAX}`, given);
  return seed;
}
