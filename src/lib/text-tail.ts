/** The last characters of a text, without half a surrogate pair at either end. */
export const tailOf = (text: string, characters: number): string =>
  text
    .slice(-characters)
    .replace(/^[\udc00-\udfff]/, '')
    .replace(/[\ud800-\udbff]$/, '');
