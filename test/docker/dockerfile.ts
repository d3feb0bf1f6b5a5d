/** One instruction before variables are expanded. `flags` are options such as `--from=build`. */
export interface Instruction {
  readonly name: string;
  readonly flags: ReadonlyMap<string, string>;
  readonly text: string;
}

/** The part of a Dockerfile that begins with one `FROM`. */
export interface Stage {
  readonly image: string;
  readonly name: string | undefined;
  readonly instructions: readonly Instruction[];
}

export interface Dockerfile {
  /** The `ARG`s before the first stage, for use in `FROM`. */
  readonly globals: ReadonlyMap<string, string>;
  readonly stages: readonly Stage[];
}

/** Parses the parts of the format that our Dockerfile uses, and throws on all others. */
export function parseDockerfile(text: string): Dockerfile {
  const globals = new Map<string, string>();
  const stages: { image: string; name: string | undefined; instructions: Instruction[] }[] = [];
  for (const instruction of instructionsOf(text)) {
    const stage = stages.at(-1);
    if (instruction.name === 'FROM') {
      const [, image = '', name] = /^(\S+)(?: AS (\S+))?$/.exec(instruction.text) ?? [];
      stages.push({ image: expand(image, globals), name, instructions: [] });
    } else if (stage) stage.instructions.push(instruction);
    else if (instruction.name === 'ARG') globals.set(...assignment(instruction.text));
    else throw new Error(`${instruction.name} before the first FROM`);
  }
  return { globals, stages };
}

function instructionsOf(text: string): Instruction[] {
  const lines = text.split('\n').filter((line) => !/^\s*(#|$)/.test(line));
  const logical = lines.join('\n').replace(/\s*\\\n\s*/g, ' ');
  return logical.split('\n').map((line) => {
    const [, name = '', rest = ''] = /^([A-Z]+) (.*)$/.exec(line) ?? [];
    if (name === '') throw new Error(`not an instruction: ${line}`);
    const [flags = ''] = /^(--\S+ )*/.exec(rest) ?? [];
    return {
      name,
      flags: new Map(flags.split(' ').filter(Boolean).map(flag)),
      text: rest.slice(flags.length),
    };
  });
}

function flag(word: string): [string, string] {
  const [, name = '', value = ''] = /^--([\w-]+)=?(.*)$/.exec(word) ?? [];
  return [name, value];
}

/** `NAME=value` or `NAME="value"`. */
function assignment(word: string): [string, string] {
  const [, name = '', value = ''] = /^([\w.-]+)=?"?(.*?)"?$/.exec(word) ?? [];
  return [name, value];
}

/** The assignments of an `ENV`, a `LABEL` or an `ARG`. */
export const assignments = (text: string): [string, string][] =>
  [...text.matchAll(/[\w.-]+(=("[^"]*"|\S*))?/g)].map(([word]) => assignment(word));

/** The words of an exec form such as `["node", "cli.js"]`; undefined for the shell form. */
export const execForm = (text: string): string[] | undefined =>
  text.startsWith('[') ? (JSON.parse(text) as string[]) : undefined;

export const expand = (text: string, variables: ReadonlyMap<string, string>): string =>
  text.replace(/\$\{(\w+)\}/g, (_, name: string) => {
    const value = variables.get(name);
    if (value === undefined) throw new Error(`nothing is known as ${name}`);
    return value;
  });
