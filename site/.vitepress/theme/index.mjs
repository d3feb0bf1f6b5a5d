import { useData, withBase } from 'vitepress';
import DefaultTheme, { VPHomeFeatures, VPHomeHero } from 'vitepress/theme';
import { h } from 'vue';
import recording from '../../../docs/demo.svg';
import './style.css';

/** The layout of `site/index.md`, whose front matter holds the text. */
const Landing = () =>
  h('main', { class: 'landing' }, [
    h(VPHomeHero),
    h('img', {
      class: 'recording',
      src: recording,
      alt: 'An answer that is cut three times, by a TCP reset, by silence and by an HTTP/2 GOAWAY, reaches the client whole',
    }),
    h(VPHomeFeatures),
  ]);

const AsMarkdown = {
  setup() {
    const { page } = useData();
    return () =>
      h('p', { class: 'as-markdown' }, [
        h('a', { href: withBase(`/${page.value.relativePath}`), target: '_self' }, 'This page as Markdown'),
      ]);
  },
};

export default {
  extends: DefaultTheme,
  Layout: () => h(DefaultTheme.Layout, null, { 'doc-footer-before': () => h(AsMarkdown) }),
  enhanceApp({ app }) {
    app.component('landing', Landing);
  },
};
