/** The message of a refusal says what is wrong, a semicolon, and what to do. */
export const splitMessage = (message: string): [seen: string, remedy: string] => {
  const end = message.lastIndexOf('; ');
  return end === -1
    ? [message, 'see docs/stores.md.']
    : [message.slice(0, end), `${message.slice(end + 2)}.`];
};
