import { isObject } from '../../../lib/json.ts';

/** What a provider's stream shows of the server it comes from. */
export interface Samples {
  /** Parsed events: the first ones, and the one that finishes. */
  readonly events: readonly Readonly<Record<string, unknown>>[];
  /** Of the response, under lower-case names. */
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

export const NO_TRACES: Samples = { events: [], headers: {} };

/** Something that only one server sends. */
export interface Fingerprint {
  /** In words, for the documentation. */
  readonly says: string;
  isIn(traces: Samples): boolean;
}

/** A field at the top of an event, of which `isIts` says that it is the server's. */
export const eventFingerprint = (
  says: string,
  isIts: (event: Readonly<Record<string, unknown>>) => boolean,
): Fingerprint => ({ says, isIn: ({ events }) => events.some(isIts) });

/** A `system_fingerprint` of this form. */
export const systemFingerprint = (says: string, form: RegExp): Fingerprint =>
  eventFingerprint(
    `\`system_fingerprint\` ${says}`,
    ({ system_fingerprint }) => typeof system_fingerprint === 'string' && form.test(system_fingerprint),
  );

/** A field of `choices[0]`, whatever its value: servers that know it send it empty, too. */
export const hasChoiceField = ({ choices }: Readonly<Record<string, unknown>>, field: string): boolean => {
  const choice: unknown = Array.isArray(choices) ? choices[0] : undefined;
  return isObject(choice) && field in choice;
};
