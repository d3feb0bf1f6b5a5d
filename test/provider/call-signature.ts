/** What a provider that signs its calls puts beside one: it tells which call was signed. */
export const callSignature = (id: string): string => Buffer.from(`signed: ${id}`).toString('base64');
