/** `$${` is a literal `${`; `${NAME}` and `${NAME:-default}` are replaced; any other `${` is a mistake. */
const PATTERN = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}\n]*))?\}|\$\{/g;

/** Private-use characters: YAML takes them as plain text, and no configuration has them. */
const MASK_FIRST = '\uE000';
const MASK_REST = '\uE001';
const MASK_INDEX = 0xe100;
const MASK_INDEX_MAX = 0xf8ff;
const MASK = /\uE000([\uE100-\uF8FF])\uE001*/g;

/**
 * YAML has no place for the braces of `{ api_key: ${KEY} }`, yet that is how it is written: references are replaced by
 * as many characters without a meaning, and put back into the values that were parsed.
 */
export function maskReferences(text: string): { masked: string; unmask: (value: string) => string } {
  const references: string[] = [];
  const masked = text.replace(PATTERN, (match, name?: string) => {
    const index = MASK_INDEX + references.length;
    if (name === undefined || index > MASK_INDEX_MAX) return match;
    references.push(match);
    return MASK_FIRST + String.fromCharCode(index) + MASK_REST.repeat(match.length - 2);
  });
  const unmask = (value: string) =>
    value.replace(MASK, (mask, index: string) => references[index.charCodeAt(0) - MASK_INDEX] ?? mask);
  return { masked, unmask };
}

export interface Expansion {
  readonly text: string;
  /** Variables that were referred to, set or not. */
  readonly names: readonly string[];
  /** What could not be expanded, with the remedy. */
  readonly faults: readonly string[];
}

/** As in a shell, the default also stands in for a variable that is empty. */
export function expand(text: string, environment: NodeJS.ProcessEnv): Expansion {
  const names: string[] = [];
  const faults: string[] = [];
  const expanded = text.replace(PATTERN, (match, name?: string, preset?: string) => {
    if (match === '$${') return '${';
    if (name === undefined) {
      faults.push(`"\${" without a variable name and "}"; write "$\${" for a literal one.`);
      return match;
    }
    names.push(name);
    const value = environment[name];
    if (preset !== undefined) return value || preset;
    if (value === undefined) {
      faults.push(`the environment variable ${name} is not set; set it or write \${${name}:-default}.`);
    }
    return value ?? '';
  });
  return { text: expanded, names, faults };
}
