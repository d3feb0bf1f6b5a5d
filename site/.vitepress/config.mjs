// The site consists of the repository's pages in place, so their paths are its URLs.
import { cpSync, existsSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitepress';
import llmstxt from 'vitepress-plugin-llms';
import { descriptionOf, drawingName, SCHEMES } from '../diagrams.ts';
import { anchorOf, destination, pageLink } from '../links.ts';
import { GROUPS } from '../navigation.ts';

const SITE = fileURLToPath(new URL('..', import.meta.url));
const ROOT = join(SITE, '..');
const DRAWINGS = join(SITE, 'diagrams');
/**
 * The base path of the site, such as `/holdfast/`. An option wouldn't do, because the index for LLMs ignores `--base`.
 */
const { HOLDFAST_SITE_BASE: base = '/' } = process.env;
/** Set by GitHub's workflows; without them, the site has no links to the repository. */
const { GITHUB_SERVER_URL, GITHUB_REPOSITORY } = process.env;
const repository = GITHUB_REPOSITORY && `${GITHUB_SERVER_URL}/${GITHUB_REPOSITORY}`;

/** Files that pages link to and that aren't pages themselves. */
const files = new Set();

function relativeLinks(md) {
  md.core.ruler.push('relative_links', ({ tokens, env }) => {
    for (const { children } of tokens)
      for (const token of children ?? []) if (token.type === 'link_open') follow(token, env.relativePath);
  });
}

function follow(token, page) {
  const to = destination(ROOT, page, token.attrGet('href'));
  if (to.kind === 'page') token.attrSet('href', to.href);
  if (to.kind === 'file') {
    files.add(to.file);
    // The router handles only pages.
    token.attrSet('target', '_self');
  }
  if (to.kind === 'nothing') token.attrs = [];
}

/** An empty cell in a header row isn't a header. */
function emptyHeaders(md) {
  md.core.ruler.push('empty_headers', ({ tokens }) => {
    tokens.forEach((token, index) => {
      if (token.type !== 'th_open' || tokens[index + 1].content !== '') return;
      token.tag = 'td';
      tokens[index + 2].tag = 'td';
    });
  });
}

/** Code may contain `{{ }}`, which Vue must not evaluate. VitePress ensures that only for whole blocks. */
function literalCode(md) {
  const inline = md.renderer.rules.code_inline;
  md.renderer.rules.code_inline = (tokens, index, ...rest) => {
    tokens[index].attrSet('v-pre', '');
    return inline(tokens, index, ...rest);
  };
}

function drawings(md) {
  const fence = md.renderer.rules.fence;
  md.renderer.rules.fence = (tokens, index, ...rest) => {
    const { info, content } = tokens[index];
    if (info !== 'mermaid') return fence(tokens, index, ...rest);
    const [, env] = rest;
    const description = md.utils.escapeHtml(descriptionOf(content));
    const images = SCHEMES.map((scheme) => {
      const path = join(DRAWINGS, drawingName(content, scheme));
      if (!existsSync(path))
        throw new Error(`${env.relativePath} has a new diagram: run npm run site:diagrams`);
      const source = relative(dirname(join(ROOT, env.relativePath)), path);
      return `<img class="${scheme}-only" src="${source}" alt="${description}">`;
    });
    return `<figure class="diagram" tabindex="0">${images.join('')}</figure>\n`;
  };
}

/**
 * Pages are outside this directory, so their imports don't resolve here. When the server bundle runs, Node finds Vue.
 */
const vueOfSite = {
  name: 'vue-of-site',
  enforce: 'pre',
  resolveId: (id, _importer, { ssr }) => (ssr && /^vue(\/|$)/.test(id) ? { id, external: true } : undefined),
};

const decisions = globSync('docs/adr/*.md', { cwd: ROOT }).sort();
/** For example, of `# 1. Seams rest on facts`. */
const titleOf = (path) => /^# (.+)$/m.exec(readFileSync(join(ROOT, path), 'utf8'))[1].replaceAll('`', '');

const sidebar = [
  ...GROUPS.map(({ title, pages }) => ({
    text: title,
    // Without a link, the group would be a button within a button.
    link: pageLink(pages[0].page),
    collapsed: title !== 'Start',
    items: pages.map(({ title: text, page }) => ({ text, link: pageLink(page) })),
  })),
  {
    text: 'Decisions',
    link: pageLink(decisions[0]),
    collapsed: true,
    items: decisions.map((path) => ({ text: titleOf(path), link: pageLink(path) })),
  },
];

export default defineConfig({
  title: 'Holdfast',
  description: 'A streaming proxy for LLM APIs that continues an answer where its stream broke',
  lang: 'en',
  base,
  srcDir: ROOT,
  srcExclude: ['{.*,bench,coverage,data,dist,src,test}/**', 'site/node_modules/**'],
  rewrites: { 'site/index.md': 'index.md' },
  cleanUrls: true,
  head: [['link', { rel: 'icon', type: 'image/svg+xml', href: `${base}icon.svg` }]],
  markdown: {
    anchor: { slugify: anchorOf },
    theme: { light: 'github-light-high-contrast', dark: 'github-dark-high-contrast' },
    languageAlias: { haproxy: 'nginx', redis: 'shell' },
    config(md) {
      md.use(relativeLinks).use(emptyHeaders).use(literalCode).use(drawings);
    },
  },
  themeConfig: {
    logo: { src: '/icon.svg', alt: '' },
    search: { provider: 'local' },
    nav: [
      { text: 'Start', link: '/docs/start' },
      { text: 'Recovery', link: '/docs/how-recovery-works' },
      { text: 'Run it', link: '/docs/docker' },
      { text: 'Reference', link: '/docs/configuration' },
      { text: 'Compare', link: '/docs/comparison' },
    ],
    sidebar,
    outline: [2, 3],
    ...(repository && {
      socialLinks: [{ icon: 'github', link: repository }],
      editLink: { pattern: `${repository}/edit/main/:path`, text: 'Edit this page' },
    }),
  },
  vite: {
    publicDir: join(SITE, 'public'),
    plugins: [
      vueOfSite,
      llmstxt({ excludeUnnecessaryFiles: false, ignoreFiles: ['index.md', 'site/index.md'] }),
    ],
  },
  buildEnd({ outDir }) {
    for (const file of files) {
      mkdirSync(dirname(join(outDir, file)), { recursive: true });
      cpSync(join(ROOT, file), join(outDir, file));
    }
  },
});
