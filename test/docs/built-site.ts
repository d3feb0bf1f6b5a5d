import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, globSync, mkdtempSync, readFileSync, statSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { promisify } from 'node:util';
import type { Missing } from '../debian-program.ts';
import { MAY_INSTALL, notInstalled } from '../installs.ts';
import { ROOT } from './pages.ts';

const run = promisify(execFile);
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css',
  '.html': 'text/html',
  '.js': 'text/javascript',
  '.svg': 'image/svg+xml',
};

/** Builds the site; or why this machine can't. */
export async function siteBuilder(): Promise<
  { readonly build: (directory: string) => Promise<void> } | Missing
> {
  const installed = existsSync(join(ROOT, 'site/node_modules/.package-lock.json'));
  if (!installed && !MAY_INSTALL) return { missing: notInstalled('VitePress') };
  return {
    async build(directory) {
      await run('npm', ['run', '--silent', 'site:build', '--', '--outDir', directory], { cwd: ROOT });
    },
  };
}

/** The built site in a directory, served at an address like that of GitHub Pages. */
export class BuiltSite {
  readonly directory: string;
  readonly #server: Server;

  private constructor(directory: string, server: Server) {
    this.directory = directory;
    this.#server = server;
  }

  static async build(build: (directory: string) => Promise<void>): Promise<BuiltSite> {
    const directory = mkdtempSync(join(tmpdir(), 'holdfast-site-'));
    await build(directory);
    const server = createServer((request, response) => {
      const file = fileAt(directory, new URL(request.url ?? '/', 'http://a.test').pathname);
      if (file === undefined) return response.writeHead(404).end();
      const type = TYPES[extname(file)] ?? 'application/octet-stream';
      return response.writeHead(200, { 'content-type': type }).end(readFileSync(file));
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new BuiltSite(directory, server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** The paths of its pages. */
  get pages(): ReadonlySet<string> {
    return new Set(globSync('**/*.html', { cwd: this.directory }));
  }

  read(path: string): string {
    return readFileSync(join(this.directory, path), 'utf8');
  }

  /** The file served for a path; `undefined` if there is none. */
  fileAt(path: string): string | undefined {
    return fileAt(this.directory, path);
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }
}

function fileAt(directory: string, path: string): string | undefined {
  const place = join(directory, decodeURI(path));
  const candidates = [place, `${place}.html`, join(place, 'index.html')];
  return candidates.find((file) => existsSync(file) && statSync(file).isFile());
}
