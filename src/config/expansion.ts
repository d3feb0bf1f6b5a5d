/** `$${` is a literal `${`; `${NAME}` and `${NAME:-default}` are replaced; any other `${` is a mistake. */
const PATTERN = /\$\$\{|\$\{([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\}|\$\{/g;

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
