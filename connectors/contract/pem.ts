/**
 * Reads keys and certificates in PEM as people provide them: with literal `\n`, without line
 * breaks, with a byte order mark, or as bundles. Error texts say what a text contains instead of
 * the expected key, and never quote it.
 */
import { createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';

export interface PemBlock {
  /** Label of the block, such as `CERTIFICATE`. */
  label: string;
  /** The block with usual line breaks. */
  pem: string;
  isEncrypted: boolean;
}

/** Maximum length of a text with keys and certificates. A bundle has a few kilobytes. */
export const maxPemChars = 200_000;

const begin = '-----BEGIN ';
const end = '-----END ';
const dashes = '-----';

/**
 * Returns the blocks of a PEM text. The whole text may also be base64-encoded. Takes linear time.
 */
export function pemBlocks(given: string): PemBlock[] {
  const text = plainText(given);
  const blocks: PemBlock[] = [];
  for (let at = text.indexOf(begin); at >= 0; at = text.indexOf(begin, at)) {
    const labelEnd = text.indexOf(dashes, at + begin.length);
    const ending = labelEnd < 0 ? -1 : text.indexOf(end, labelEnd);
    if (ending < 0) break;
    const label = text.slice(at + begin.length, labelEnd);
    const content = text.slice(labelEnd + dashes.length, ending);
    if (text.startsWith(`${label}${dashes}`, ending + end.length))
      blocks.push(blockOf(label, content));
    at = ending;
  }
  return blocks;
}

/** Returns the text with real line breaks. Decodes it if it is base64. */
function plainText(given: string): string {
  const text = given
    .replace(/^\ufeff/, '')
    .replaceAll(/\\r\\n|\\n|\\r|\r\n?/g, '\n')
    .trim();
  if (text.includes(begin) || !/^[A-Za-z0-9+/=\s]+$/.test(text)) return text;
  const decoded = Buffer.from(text, 'base64').toString('latin1');
  return decoded.includes(begin) ? plainText(decoded) : text;
}

function blockOf(label: string, content: string): PemBlock {
  const isEncrypted =
    label === 'ENCRYPTED PRIVATE KEY' || /Proc-Type:\s*4,\s*ENCRYPTED/.test(content);
  const lines = content.replaceAll(/\s+/g, '').match(/.{1,64}/g) ?? [];
  return {
    label,
    pem: `${begin}${label}${dashes}\n${lines.join('\n')}\n${end}${label}${dashes}\n`,
    isEncrypted,
  };
}

/** True if a text is JSON, such as a service account file that contains a PEM text as a member. */
const isJson = (text: string): boolean => /^[\ufeff\s]*[{[]/.test(text);

const isKeyLabel = (label: string): boolean =>
  label === 'PRIVATE KEY' || label.endsWith(' PRIVATE KEY');

/** Private key with its PEM text. */
export interface ReadKey {
  key: KeyObject;
  pem: string;
}

/** Returns the readable private keys of a text. Encrypted and damaged keys are skipped. */
export function privateKeysIn(text: string): ReadKey[] {
  return pemBlocks(text).flatMap(({ label, pem }) => {
    const key = isKeyLabel(label) ? keyOf(pem) : null;
    return key ? [{ key, pem }] : [];
  });
}

/** Parses the private key in a PEM text; null if it is invalid. */
export function keyOf(pem: string): KeyObject | null {
  try {
    return createPrivateKey(pem);
  } catch {
    return null;
  }
}

/** Returns the certificates of a text; null if a certificate is invalid. */
export function certificatesIn(text: string): X509Certificate[] | null {
  try {
    return pemBlocks(text)
      .filter(
        ({ label }) =>
          label === 'CERTIFICATE' ||
          label === 'X509 CERTIFICATE' ||
          label === 'TRUSTED CERTIFICATE',
      )
      .map(({ pem }) => new X509Certificate(pem));
  } catch {
    return null;
  }
}

const openSsh = 'OPENSSH PRIVATE KEY';

/** Meaning of a PEM label for the error text. */
const meanings: readonly (readonly [RegExp, string])[] = [
  [/^OPENSSH/, 'it is a key of OpenSSH'],
  [/PRIVATE KEY$/, 'it is a private key'],
  [/PUBLIC KEY$/, 'it is a public key'],
  [/CERTIFICATE REQUEST$/, 'it is a certificate request, from which the certificate is made'],
  [/CERTIFICATE$/, 'it is a certificate'],
  [/^EC PARAMETERS$/, 'it has the parameters of a curve only'],
];

/**
 * Returns in words what a text contains instead of a private key or certificate. `isExpected`
 * selects the expected labels; these are not reported as the cause.
 */
export function causeOf(text: string, isExpected: (label: string) => boolean): string {
  const blocks = pemBlocks(text);
  const right = blocks.filter(({ label }) => isExpected(label) && label !== openSsh);
  if (isJson(text)) return 'it is JSON: give the key in it alone';
  if (right.some(({ isEncrypted }) => isEncrypted))
    return 'the key is encrypted: take its password off';
  if (right.length > 0) return 'what stands between its first and last line is damaged';
  const label = blocks[0]?.label ?? '';
  return meanings.find(([form]) => form.test(label))?.[1] ?? formCause(text);
}

function formCause(text: string): string {
  const plain = plainText(text);
  if (plain === '') return 'it is empty';
  if (plain.includes(begin)) return 'it is cut off: the line -----END …----- is missing';
  if (/^M[A-Za-z0-9+/=\s]{40,}$/.test(plain))
    return 'its first and last line, -----BEGIN …----- and -----END …-----, are missing';
  return /\.(p8|p12|pem|key|cer)$/i.test(plain)
    ? 'it is the name of a file: give its content'
    : 'it is no PEM text';
}

/** Kind of private key that a member accepts. */
export type KeyKind = 'P-256' | 'RSA' | 'any';

const expectations: Readonly<Record<KeyKind, string>> = {
  'P-256': 'a PKCS#8 PEM with an EC P-256 key (the .p8 file)',
  RSA: 'an RSA key in PEM',
  any: 'an unencrypted private key in PEM',
};

/** Returns the private key in a PEM text, or an error that follows the name of the member. */
export function readPrivateKey(text: string, kind: KeyKind): { pem: string } | { error: string } {
  const keys = text.length > maxPemChars || isJson(text) ? [] : privateKeysIn(text);
  const fitting = keys.filter(({ key }) => kind === 'any' || kindOf(key) === kind);
  const [first] = fitting;
  const expected = `must be ${expectations[kind]}`;
  if (!first) {
    const [other] = keys;
    return {
      error: `${expected}; ${other ? `it is ${kindName(other.key)}` : causeOf(text, isKeyLabel)}`,
    };
  }
  if (fitting.some(({ key }) => !key.equals(first.key)))
    return { error: `${expected}; it holds several keys` };
  return { pem: originalIfUsual(text, first.pem) };
}

/**
 * Returns the text unchanged if it is already in the usual form. Its fingerprint then equals the
 * fingerprint of the file.
 */
export const originalIfUsual = (text: string, usual: string): string =>
  text.trimEnd() === usual.trimEnd() ? text : usual;

function kindOf({ asymmetricKeyDetails, asymmetricKeyType }: KeyObject): KeyKind | undefined {
  if (asymmetricKeyType === 'rsa') return 'RSA';
  return asymmetricKeyType === 'ec' && asymmetricKeyDetails?.namedCurve === 'prime256v1'
    ? 'P-256'
    : undefined;
}

function kindName(key: KeyObject): string {
  const kind = kindOf(key);
  if (kind === 'RSA') return 'an RSA key, as of a certificate or of a service account';
  if (kind === 'P-256') return "an EC P-256 key, as of Apple's .p8 file";
  const { asymmetricKeyDetails: details, asymmetricKeyType: type } = key;
  return details?.namedCurve
    ? `an EC key of the curve ${details.namedCurve}`
    : `a key of the type ${type}`;
}
