import { execFile } from 'node:child_process';
import { PassThrough } from 'node:stream';
import { fileURLToPath } from 'node:url';
import { promisify, stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { durationText, timelineLine } from '../src/commands/run-text.ts';
import { painter, printable, printableLines } from '../src/commands/terminal.ts';
import { type Column, textTable, widthOf } from '../src/commands/text-table.ts';
import { debianProgram } from './debian-program.ts';
import { chunkEvent, startProvider } from './http-peer.ts';
import { needs } from './needs.ts';

/** Python can open pseudo-terminals; Node can't. */
const python = await debianProgram('python3');
const curl = await debianProgram('curl');
const { PATH, NODE_COMPILE_CACHE } = process.env;
const ENVIRONMENT = { PATH, NODE_COMPILE_CACHE, TERM: 'xterm' };

describe('what others have said', () => {
  it.each([
    ['\u001b[2J', '\\u001b[2J'],
    ['a\r\nb\tc', 'a\\u000d\\u000ab\\u0009c'],
    ['\u009b31m', '\\u009b31m'],
    ['\u202eevil\u2066', '\\u202eevil\\u2066'],
    ['line\u2028line', 'line\\u2028line'],
    ['half \ud800', 'half \ufffd'],
    ['größer 日本語 👩‍💻', 'größer 日本語 👩‍💻'],
  ])('%j is shown as %j', (said, shown) => {
    expect(printable(said)).toBe(shown);
  });

  it('keeps its lines where it may have several', () => {
    expect(printableLines('a\n\tb\r\u001b')).toBe('a\n\tb\\u000d\\u001b');
  });
});

describe('a table', () => {
  const COLUMNS: readonly Column[] = [
    { title: 'RUN' },
    { title: 'MODEL', width_min: 5, expendable: 1 },
    { title: 'AGE', align: 'right', expendable: 2 },
  ];
  const ROWS = [
    ['run_1', 'a-model-with-a-long-name', '3s'],
    ['run_22', 'm', '12m00s'],
  ];

  it('is as wide as it has to be', () => {
    expect(textTable(COLUMNS, ROWS)).toEqual([
      'RUN     MODEL                        AGE',
      'run_1   a-model-with-a-long-name      3s',
      'run_22  m                         12m00s',
    ]);
  });

  it('cuts what may be cut, then leaves out what it can do without, and never cuts an id', () => {
    expect(textTable(COLUMNS, ROWS, 30)).toEqual([
      'RUN     MODEL              AGE',
      'run_1   a-model-with-…      3s',
      'run_22  m               12m00s',
    ]);
    expect(textTable(COLUMNS, ROWS, 20)).toEqual(['RUN     MODEL', 'run_1   a-model-wit…', 'run_22  m']);
    expect(textTable(COLUMNS, ROWS, 4)).toEqual(['RUN', 'run_1', 'run_22']);
  });

  it('knows how wide letters are', () => {
    const [, line = ''] = textTable(COLUMNS, [['run_1', '日本語のモデル名前はとても長い', '3s']], 26);
    expect(widthOf(line)).toBeLessThanOrEqual(26);
    expect(line).toBe('run_1  日本語のモデ…    3s');
  });
});

describe('colours', () => {
  const terminal = Object.assign(new PassThrough(), { isTTY: true });
  it.each([
    ['a terminal', terminal, {}, '\u001b[31mred\u001b[0m'],
    ['a terminal whose owner wants none', terminal, { NO_COLOR: '1' }, 'red'],
    ['a terminal that has none', terminal, { TERM: 'dumb' }, 'red'],
    ['a pipe', new PassThrough(), {}, 'red'],
  ])('on %s', (_name, output, environment, shown) => {
    expect(painter(output, environment)('red', 'red')).toBe(shown);
  });
});

it('durations', () => {
  expect([0, 340, 4250, 59_999, 185_000, 7_800_000].map(durationText)).toEqual([
    ...['0ms', '340ms', '4.2s', '59.9s', '3m05s', '2h10m'],
  ]);
});

it('the timeline of a run', () => {
  const entries = [
    { kind: 'taken_over', epoch: 2, after_event: 17 },
    { kind: 'attempt', attempt: 2, upstream: 'one', mode: 'prefill', model: 'm', compressed: true },
    { kind: 'answering', attempt: 2 },
    {
      ...{ kind: 'interrupted', attempt: 2, upstream: 'one', cause: 'connection_reset', phase: 'text' },
      ...{ evidence: 'transport', detail: 'ECONN\u001bRESET', added: 12, seam: 'exact' },
    },
    { kind: 'planned', plan: 'R1', wait_ms: 500 },
    { kind: 'recovered', plan: 'R1', mode: 'prefill', gap_ms: 1200 },
    { kind: 'whole', attempt: 3, added: 5, seam: 'overlap' },
    { kind: 'ended', outcome: 'recovered', finish: 'stop' },
    { kind: 'a later release tells more' },
  ];
  const lines = entries.map((entry, index) =>
    timelineLine({ at_ms: 1000 + index * 100, ...entry } as never, 1000),
  );
  expect(lines).toEqual([
    '     +0ms  taken over, epoch 2, after event 17',
    '   +100ms  attempt 2 at one (prefill, model m, conversation compressed)',
    '   +200ms  attempt 2 answers',
    '   +300ms  attempt 2 interrupted: connection_reset in text (transport ECONN\\u001bRESET) after 12 characters, seam exact',
    '   +400ms  plan R1, in 500ms',
    '   +500ms  recovered by R1 prefill, the client waited 1.2s',
    '   +600ms  attempt 3 whole after 5 characters, seam overlap',
    '   +700ms  ended: recovered (stop)',
    '   +800ms  a later release tells more',
  ]);
});

const CLI = fileURLToPath(new URL('../src/cli.ts', import.meta.url));

it('in a real terminal, a table has its width and its colours', {
  timeout: 60_000,
  ...needs(python),
}, async () => {
  const admin = await startProvider((_request, response) => {
    const run = {
      ...{
        key: 1,
        run: 'run_AAAAAAAAAAAAAAAAAAAAAA',
        wire: 'chat_completions',
        model: `\u001b]0;title\u0007${'m'.repeat(80)}`,
      },
      ...{ upstream: 'provider', attempt: 1, state: 'answering', state_at_ms: 0, created_at_ms: 0 },
      ...{ characters: 3, tool_calls: 0, interruptions: 0 },
    };
    response.end(JSON.stringify({ version: 1, now_ms: 4000, live: [run], ended: [] }));
  });
  const { stdout } = await inTerminal(60, ['runs', 'list', '--admin', admin]);
  const lines = stdout.trimEnd().split(/\r?\n/);
  expect(lines).toHaveLength(2);
  expect(lines[0]).toMatch(/^.\[1mRUN +STATE +MODEL/);
  expect(lines[1]).toMatch(/^run_A{22} {2}answering +\\u001.*… +4\.0s$/);
  expect(stdout).not.toContain('\u0007');
  expect(lines[1]?.length).toBeLessThanOrEqual(60);
});

/** Runs the command in a terminal with this many columns. */
async function inTerminal(columns: number, words: readonly string[]): Promise<{ stdout: string }> {
  const script = [
    'import fcntl, os, pty, struct, sys, termios',
    'pid, fd = pty.fork()',
    'if pid == 0:',
    '    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, int(sys.argv[1]), 0, 0))',
    '    os.execvp(sys.argv[2], sys.argv[2:])',
    'try:',
    '    while True:',
    '        data = os.read(fd, 65536)',
    '        if not data: break',
    '        sys.stdout.buffer.write(data)',
    'except OSError: pass',
  ].join('\n');
  const argument = ['-c', script, String(columns), process.execPath, CLI, ...words];
  const { promise, resolve, reject } = Promise.withResolvers<{ stdout: string }>();
  execFile(pathOf(python), argument, { env: ENVIRONMENT }, (error, stdout) =>
    error ? reject(error) : resolve({ stdout }),
  );
  return promise;
}

it(
  'a replica whose terminal is closed drains, although nothing reads its log any more',
  needs(python),
  async () => {
    const script = [
      'import os, pty, sys',
      'pid, fd = pty.fork()',
      'if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])',
      'said = b""',
      'while b"listening" not in said: said += os.read(fd, 65536)',
      'os.close(fd)',
      'print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))',
    ].join('\n');
    const options = [
      '--port',
      '0',
      '--admin-port',
      '0',
      '--store',
      'memory',
      '--upstream',
      'http://127.0.0.1:9/v1',
    ];
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const argument = ['-c', script, process.execPath, CLI, 'serve', ...options];
    execFile(pathOf(python), argument, { env: ENVIRONMENT }, (error, stdout) =>
      error ? reject(error) : resolve(stdout),
    );
    expect(await promise).toBe('0\n');
  },
);

it('a replica on a terminal says where it is, how each run went, and how many there were', {
  timeout: 60_000,
  ...needs(python, curl),
}, async () => {
  let requests = 0;
  const provider = await startProvider((_request, response) => {
    requests++;
    response.writeHead(requests === 3 ? 401 : 200, { 'content-type': 'text/event-stream' });
    if (requests === 1) {
      response.write(chunkEvent({ role: 'assistant', content: 'Hello, dear' }), () => response.destroy());
    } else {
      response.end(
        `${chunkEvent({ role: 'assistant', content: 'Hello, dear world.' })}${chunkEvent({}, 'stop')}data: [DONE]\n\n`,
      );
    }
  });
  const script = [
    'import os, pty, re, signal, subprocess, sys',
    'pid, fd = pty.fork()',
    'if pid == 0: os.execvp(sys.argv[1], sys.argv[1:])',
    'said = b""',
    'def until(words):',
    '    global said',
    '    while not re.search(words, said): said += os.read(fd, 65536)',
    'until(b" listening ")',
    'command = re.search(rb"curl .*\\}\'", said).group(0).decode()',
    'answer = subprocess.run(["sh", "-c", command], capture_output=True, text=True).stdout',
    'until(b"rescued")',
    'subprocess.run(["sh", "-c", command], capture_output=True)',
    'until(b"key refused")',
    'os.kill(pid, signal.SIGINT)',
    'try:',
    '    while True:',
    '        data = os.read(fd, 65536)',
    '        if not data: break',
    '        said += data',
    'except OSError: pass',
    'status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])',
    'sys.stdout.write(answer + "---\\n" + said.decode() + str(status))',
  ].join('\n');
  const ports = ['--port', '0', '--admin-port', '0', '--store', 'memory'];
  const argument = [process.execPath, CLI, 'serve', ...ports, '--upstream', `${provider}/v1`];
  const { stdout } = await promisify(execFile)(pathOf(python), ['-c', script, ...argument], {
    env: ENVIRONMENT,
  });
  const [answer = '', shown = ''] = stdout.split('---\n');
  expect(answer).toContain('data: [DONE]');
  const lines = stripVTControlCharacters(shown).split(/\r?\n/);
  expect(shown).toContain('\u001b[32m✔\u001b[0m');
  expect(lines).toEqual(
    expect.arrayContaining([
      expect.stringMatching(/^ {2}API {8}http:\/\/127\.0\.0\.1:\d+\/v1$/),
      `  Upstreams  default (${new URL(provider).host})`,
      expect.stringMatching(/✔ run_[\w-]{22} MODEL rescued \(reset\) 18 chars [\d.]+m?s, gap [\d.]+m?s$/),
      expect.stringMatching(/✖ run_[\w-]{22} MODEL 401 from default: key refused, [\d.]+m?s$/),
      expect.stringMatching(/ info {2}stopped$/),
      expect.stringMatching(/^holdfast: 2 runs, 1 rescued, 1 failed, longest gap at most [\d.]+m?s$/),
    ]),
  );
  expect(lines.at(-1)).toBe('0');
});

const pathOf = (program: Awaited<ReturnType<typeof debianProgram>>): string => {
  if ('missing' in program) throw new Error(program.missing);
  return program.path;
};
