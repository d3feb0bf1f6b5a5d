import { basename, dirname } from 'node:path/posix';
import type { Import } from './imports.ts';

/**
 * The layers. An import may point to its own layer or a later one, never to an earlier one. Folders of the same layer
 * may import each other; the check for circles finds those that do so in both directions. Folders that aren't listed
 * may import, and be imported by, every folder.
 */
export const LAYERS: readonly (readonly string[])[] = [
  ['src/proxy/api'],
  ['src/proxy/tasks'],
  ['src/proxy/resume'],
  ['src/proxy/run'],
  ['src/proxy/downstream', 'src/proxy/wires', 'src/proxy/upstream', 'src/checkpoint'],
  ['src/plans'],
  ['src/interrupts'],
  ['src/lib'],
];

/** The imports that point to an earlier layer. */
export function orderViolations(imports: readonly Import[], layers = LAYERS): Import[] {
  const layerOf = (path: string) => {
    const folder = `${dirname(path)}/`;
    return layers.findIndex((layer) => layer.some((listed) => folder.startsWith(`${listed}/`)));
  };
  return imports.filter(({ from, to }) => layerOf(to) !== -1 && layerOf(to) < layerOf(from));
}

/**
 * The rule as `overrides` of biome.json, so that an editor marks a wrong import. Biome compares specifiers rather than
 * the files they resolve to, and only those of statements and `import()` calls, so `orderViolations` is the complete
 * check.
 */
export function linterOverrides(layers = LAYERS): object[] {
  return layers.slice(1).map((layer, index) => {
    const earlier = layers.slice(0, index + 1).flat();
    const group = earlier.map((folder) => `../**/${basename(folder)}/**`);
    const rule = { level: 'error', options: { patterns: [{ group, message: messageFor(layers) }] } };
    return {
      includes: layer.map((folder) => `${folder}/**`),
      linter: { rules: { style: { noRestrictedImports: rule } } },
    };
  });
}

function messageFor(layers: readonly (readonly string[])[]): string {
  const names = layers.map((layer) => {
    const folders = layer.map((folder) => basename(folder)).join(', ');
    return layer.length > 1 ? `{${folders}}` : folders;
  });
  return `Imports point one way: ${names.join(' → ')}.`;
}
