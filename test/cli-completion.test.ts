import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { bashCompletion, fishCompletion, zshCompletion } from '../src/commands/completion.ts';
import { COMMANDS } from '../src/commands/table.ts';
import { runCli, temporaryDirectory } from './cli-process.ts';
import { shellBinary } from './shells.ts';

const SCRIPTS = { bash: bashCompletion, zsh: zshCompletion, fish: fishCompletion };

/** What the shell itself offers for the last of these words. */
type Offer = (shell: string, words: readonly string[], directory: string) => string[];

const lines = (text: string): string[] => text.split('\n').filter((line) => line !== '');

const offeredByBash: Offer = (shell, words, directory) => {
  const quoted = words.map((word) => `'${word}'`).join(' ');
  const script = [
    'source ./completion.bash',
    `COMP_WORDS=(${quoted}); COMP_CWORD=${words.length - 1}`,
    // Bash provides this only in a terminal, and the test doesn't need it.
    'compopt() { :; }',
    'complete -p holdfast >/dev/null && _holdfast',
    `printf '%s\\n' "\${COMPREPLY[@]}"`,
  ].join('\n');
  return lines(execFileSync(shell, ['--norc', '-c', script], { cwd: directory, encoding: 'utf8' }));
};

const offeredByFish: Offer = (shell, words, directory) => {
  const script = `source ./completion.fish; complete -C '${words.join(' ')}'`;
  const env = { ...process.env, HOME: directory };
  const offers = execFileSync(shell, ['--no-config', '-c', script], {
    cwd: directory,
    encoding: 'utf8',
    env,
  });
  return lines(offers).map((line) => line.split('\t', 1)[0] ?? '');
};

/** Zsh completes only in its line editor, so start one on a pseudo-terminal. */
const offeredByZsh: Offer = (shell, words, directory) => {
  writeFileSync(join(directory, 'offers'), '');
  const script = [
    'zmodload zsh/zpty',
    `zpty -b shell ${shell} -f -i`,
    'type_in() { zpty -w shell "$1"; }',
    'type_in "PROMPT= ; unsetopt beep"',
    'type_in "autoload -Uz compinit && compinit -D -u && source ./completion.zsh"',
    // Record the matches in addition to offering them.
    String.raw`type_in "compadd() { builtin compadd -A found \"\$@\"; print -rl -- \$found >>offers; builtin compadd \"\$@\" }"`,
    // Until the line editor controls the terminal, the terminal itself would handle \x15 and discard the line,
    // so the editor reports when it starts.
    `type_in "zle-line-init() { print -rn -- rea''dy }; zle -N zle-line-init"`,
    'zpty -r shell line "*ready*"',
    // Then discard the line; the next one reports the end.
    `zpty -n -w shell "${words.join(' ')}"$'\\t\\x15'"print do''ne"$'\\n'`,
    'zpty -r shell line "*done*"',
  ].join('\n');
  execFileSync(shell, ['-f', '-c', script], { cwd: directory, timeout: 60_000 });
  return [...new Set(lines(readFileSync(join(directory, 'offers'), 'utf8')))];
};

const SHELLS = [
  ['bash', offeredByBash],
  ['zsh', offeredByZsh],
  ['fish', offeredByFish],
] as const;

describe.each(SHELLS)('in %s', (name, offered) => {
  const prepared = async (skip: (why: string) => never): Promise<(...words: string[]) => string[]> => {
    const shell = await shellBinary(name);
    if (shell === undefined) return skip(`there is no ${name} on this machine, and it cannot be installed`);
    const directory = temporaryDirectory();
    writeFileSync(join(directory, `completion.${name}`), SCRIPTS[name]());
    writeFileSync(join(directory, 'holdfast.yaml'), '');
    return (...words) => offered(shell, words, directory).sort();
  };

  it('completes commands, their options, and values that are known', { timeout: 120_000 }, async ({
    skip,
  }) => {
    const offers = await prepared(skip);
    const firsts = [...new Set(COMMANDS.map((command) => command.name.split(' ')[0] ?? ''))];
    expect(offers('holdfast', '')).toEqual(expect.arrayContaining(firsts));
    expect(offers('holdfast', 'do')).toEqual(['doctor']);
    expect(offers('holdfast', 'runs', '')).toEqual(['cancel', 'list', 'show', 'tail']);
    expect(offers('holdfast', 'runs', 'tail', '--a')).toEqual(['--admin', '--anonymous', '--api']);
    expect(offers('holdfast', 'runs', 'list', '--a')).toEqual(['--admin']);
    expect(offers('holdfast', 'completion', '')).toEqual(['bash', 'fish', 'zsh']);
    expect(offers('holdfast', 'help', '')).toEqual(expect.arrayContaining(firsts));
    expect(offers('holdfast', 'help', 'do')).toEqual(['doctor']);
    expect(offers('holdfast', 'help', 'runs', '')).toEqual(['cancel', 'list', 'show', 'tail']);
    expect(offers('holdfast', 'help', 'runs', 's')).toEqual(['show']);
    expect(offers('holdfast', 'serve', '--store', 'm')).toEqual(['memory']);
    expect(offers('holdfast', 'serve', '--config', 'hold')).toEqual(['holdfast.yaml']);
    expect(offers('holdfast', 'check', 'hold')).toEqual(['holdfast.yaml']);
    // Repeatable options are offered again.
    expect(offers('holdfast', 'chaos', '--cut', 'reset', '--c')).toEqual(['--cut']);
  });
});

it('holdfast completion prints the script, and knows which there are', async () => {
  expect(await runCli(['completion', 'bash'])).toEqual({ status: 0, stdout: bashCompletion(), stderr: '' });
  expect(await runCli(['completion', 'fsh'])).toMatchObject({
    status: 2,
    stderr: expect.stringContaining('holdfast: there are no completions for "fsh". Did you mean'),
  });
});
