import type { JsonObject } from '../../../shared/domain/json.ts';
import { inputName, readInput, toDictionary } from '../input.ts';
import { CommandFailure } from '../report.ts';

/** PEM parts from files, with the names of these files. */
export interface PemParts {
  certificate?: string;
  privateKey?: string;
  files: string[];
}

/** Content of a credential file by its kind. */
export type CredentialFile =
  | { kind: 'json'; document: JsonObject }
  | { kind: 'pem'; parts: Omit<PemParts, 'files'> }
  | { kind: 'pkcs12'; content: Buffer };

/** Limit on the size; certificates and keys are a few kilobytes. */
const maxBytes = 1_000_000;

/** Reads a file, or standard input for `-`, and detects its kind. Throws `CommandFailure`. */
export async function readCredentialFile(path: string): Promise<CredentialFile> {
  const content = await readInput(path);
  const name = inputName(path);
  if (content.length > maxBytes) throw new CommandFailure(`${name} is too large for credentials.`);
  // PKCS#12 is DER: a sequence.
  if (content[0] === 0x30) return { kind: 'pkcs12', content };
  const text = content.toString();
  // Service account files are JSON with PEM inside.
  const isPem = !text.trimStart().startsWith('{') && text.includes('-----BEGIN ');
  return isPem
    ? { kind: 'pem', parts: pemParts(text, name) }
    : { kind: 'json', document: toDictionary(text, name) };
}

/** Reads the first line of a file that holds a password or a secret. Throws `CommandFailure`. */
export async function readSecretLine(path: string): Promise<string> {
  return (await readInput(path)).toString().split(/\r?\n/, 1)[0] ?? '';
}

function pemParts(text: string, name: string): Omit<PemParts, 'files'> {
  const parts = [...text.matchAll(/-----BEGIN ([A-Z0-9 ]+)-----[\s\S]+?-----END \1-----/g)];
  const find = (isWanted: (label: string) => boolean) =>
    parts.find(([, label = '']) => isWanted(label))?.[0].concat('\n');
  if (
    parts.some(
      ([whole, label = '']) => label === 'ENCRYPTED PRIVATE KEY' || whole.includes('Proc-Type: 4,ENCRYPTED'),
    )
  )
    throw new CommandFailure(`The key in ${name} is encrypted: take the password off, or use the .p12 file.`);
  const certificate = find((label) => label === 'CERTIFICATE');
  const privateKey = find((label) => label.endsWith('PRIVATE KEY'));
  if (certificate === undefined && privateKey === undefined)
    throw new CommandFailure(`${name} holds neither a certificate nor a private key.`);
  return { ...(certificate && { certificate }), ...(privateKey && { privateKey }) };
}
