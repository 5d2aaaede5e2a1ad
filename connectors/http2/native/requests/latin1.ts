/** What `Buffer#write` ends in after it has looked up the encoding. */
interface Latin1Writer {
  latin1Write(text: string, at: number, length: number): number;
}

const hasLatin1Write = (bytes: object): bytes is Latin1Writer =>
  'latin1Write' in bytes && typeof bytes.latin1Write === 'function';

const latin1Write = hasLatin1Write(Buffer.prototype) ? Buffer.prototype.latin1Write : null;

/**
 * Writes a text, one byte per character; straight where Node lets us, which is a quarter faster and happens
 * twice per request.
 */
export function writeLatin1(bytes: Buffer, text: string, at: number): void {
  if (latin1Write === null) bytes.write(text, at, 'latin1');
  else latin1Write.call(bytes, text, at, text.length);
}
