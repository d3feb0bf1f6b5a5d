/**
 * Returns the options under their present names only. `names` maps each former name to the present one. A value of
 * `undefined` counts as absent. Throws a `TypeError` if an option has both names.
 */
export function withPresentNames<Options extends object, Former extends keyof Options>(
  options: Options,
  names: Readonly<Record<Former, keyof Options & string>>,
): Omit<Options, Former> {
  const present: Record<string, unknown> = Object.fromEntries(Object.entries(options));
  for (const [former, name] of Object.entries<keyof Options & string>(names)) {
    const value = present[former];
    delete present[former];
    if (value === undefined) continue;
    if (present[name] !== undefined)
      throw new TypeError(`${name} and ${former} are the same option: give ${name} alone`);
    present[name] = value;
  }
  return present as Omit<Options, Former>;
}
