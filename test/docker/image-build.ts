import { execFileSync } from 'node:child_process';
import { mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import {
  assignments,
  type Dockerfile,
  execForm,
  expand,
  type Instruction,
  type Stage,
} from './dockerfile.ts';
import { runEnclosed } from './enclosure.ts';
import { type Machine, nodeImage } from './node-image.ts';

export const REPOSITORY = fileURLToPath(new URL('../..', import.meta.url));

/** The settings with which a container starts. */
export interface ImageConfiguration {
  environment: Record<string, string>;
  readonly labels: Map<string, string>;
  user: string;
  directory: string;
  readonly volumes: string[];
  readonly ports: string[];
  stopSignal: string;
  healthCheck: string[];
  entrypoint: string[];
  command: string[];
}

export interface Image {
  readonly root: string;
  readonly configuration: ImageConfiguration;
}

/** Executes the instructions of a Dockerfile in directories below `scratch`, with this machine's programs. */
export class ImageBuild {
  readonly #dockerfile: Dockerfile;
  readonly #scratch: string;
  readonly #machine: Machine;
  readonly #context: readonly string[];
  readonly #stages = new Map<string, string>();

  constructor(dockerfile: Dockerfile, context: readonly string[], scratch: string, machine: Machine) {
    this.#context = context;
    this.#dockerfile = dockerfile;
    this.#scratch = scratch;
    this.#machine = machine;
  }

  /** Builds all stages and returns the image of the last one. */
  async build(): Promise<Image> {
    let image: Image | undefined;
    for (const stage of this.#dockerfile.stages) image = await this.#stage(stage);
    if (!image) throw new Error('there is no stage');
    return image;
  }

  async #stage(stage: Stage): Promise<Image> {
    const root = join(this.#scratch, stage.name ?? 'final');
    mkdirSync(root);
    const base = stage.image === 'scratch' ? undefined : nodeImage(root, this.#machine);
    if (stage.name !== undefined) this.#stages.set(stage.name, root);
    const variables = new Map<string, string>();
    const configuration: ImageConfiguration = {
      environment: { ...base?.environment },
      labels: new Map(),
      user: '0:0',
      directory: '/',
      volumes: [],
      ports: [],
      stopSignal: '',
      healthCheck: [],
      entrypoint: [],
      command: [],
    };
    let shell = ['/bin/sh', '-c'];
    const steps: Record<string, (text: string, instruction: Instruction) => unknown> = {
      ARG: (text) => variables.set(...(assignments(text)[0] ?? ['', ''])),
      ENV: (text) => Object.assign(configuration.environment, Object.fromEntries(assignments(text))),
      LABEL: (text) => {
        for (const [name, value] of assignments(text))
          configuration.labels.set(name, expand(value, variables));
      },
      WORKDIR: (text) => {
        configuration.directory = text;
        mkdirSync(join(root, text), { recursive: true });
      },
      SHELL: (text) => {
        shell = execForm(text) ?? [];
      },
      USER: (text) => {
        configuration.user = text;
      },
      VOLUME: (text) => configuration.volumes.push(...(execForm(text) ?? [])),
      EXPOSE: (text) => configuration.ports.push(...text.split(' ')),
      STOPSIGNAL: (text) => {
        configuration.stopSignal = text;
      },
      HEALTHCHECK: (text) => {
        configuration.healthCheck = execForm(text.replace(/^.*?CMD /, '')) ?? [];
      },
      ENTRYPOINT: (text) => {
        configuration.entrypoint = execForm(text) ?? [];
      },
      CMD: (text) => {
        configuration.command = execForm(text) ?? [];
      },
      COPY: (text, { flags }) => this.#copy(root, configuration.directory, text, flags),
      RUN: async (text, { flags }) => {
        const { environment, directory, user } = configuration;
        const mounts = new Map([...(base?.mounts ?? []), ...this.#cache(flags.get('mount'), root)]);
        const enclosure = { root, mounts, isReadOnly: false, directory, user, environment };
        await runEnclosed(enclosure, [...shell, text]);
      },
    };
    for (const instruction of stage.instructions) {
      const step = steps[instruction.name];
      if (!step) throw new Error(`${instruction.name} is not known here`);
      await step(instruction.text, instruction);
    }
    return { root, configuration };
  }

  /** Uses this machine's npm cache for cache mounts. */
  #cache(mount: string | undefined, root: string): [string, string][] {
    if (mount === undefined) return [];
    const [, target = ''] = /^type=cache,target=(\S+)$/.exec(mount) ?? [];
    mkdirSync(join(root, target), { recursive: true });
    return [[target, this.#machine.npmCache]];
  }

  #copy(root: string, directory: string, text: string, flags: ReadonlyMap<string, string>): void {
    const words = text.split(' ');
    const target = words.pop() ?? '';
    const stage = flags.get('from');
    const source = stage === undefined ? REPOSITORY : this.#rootOf(stage);
    const to = join(root, resolve(directory, target));
    const owner = flags.get('chown') ?? '0:0';
    for (const word of words) {
      if (stage === undefined) this.#requireSent(word);
      const path = join(source, word);
      // Copying a directory copies its contents. A target with a trailing slash is a directory.
      const isDirectory = statSync(path).isDirectory();
      const copied = isDirectory ? readdirSync(path) : [basename(word)];
      const isInto = isDirectory || target.endsWith('/');
      mkdirSync(isInto ? to : dirname(to), { recursive: true });
      const places = isInto ? copied.map((name) => join(to, name)) : [to];
      execFileSync('cp', ['-a', isDirectory ? `${path}/.` : path, isInto ? `${to}/` : to]);
      if (places.length > 0) execFileSync('chown', ['-R', owner, ...places]);
    }
  }

  #rootOf(stage: string): string {
    const root = this.#stages.get(stage);
    if (root === undefined) throw new Error(`no stage before this one is called ${stage}`);
    return root;
  }

  #requireSent(path: string): void {
    if (!this.#context.includes(path)) throw new Error(`.dockerignore does not let ${path} through`);
  }
}

/** The build context: everything that `.dockerignore` allows. */
export function contextOf(ignore: string): readonly string[] {
  const lines = ignore.split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  const [first, ...allowed] = lines;
  if (first !== '*' || allowed.some((line) => !line.startsWith('!')))
    throw new Error('not a list of what is sent');
  return allowed.map((line) => line.slice(1));
}
