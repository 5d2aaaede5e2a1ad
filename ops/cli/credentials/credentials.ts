import { createRequire } from 'node:module';
import { basename } from 'node:path';
import { createInterface } from 'node:readline/promises';
import { Writable } from 'node:stream';
import type forge from 'node-forge';
import { bestPair, bundleIdOf } from '../../../connectors/apns/credentials.ts';
import { certificatesIn, privateKeysIn } from '../../../connectors/contract/pem.ts';
import { guideOf } from '../../../connectors/guides.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { gatewayName, language, recognised, say } from '../language.ts';
import { CommandFailure, UsageError } from '../report.ts';
import { type PemParts, readCredentialFile, readSecretLine } from './files.ts';

export interface CredentialOptions extends AppleOptions {
  passwordFile?: string;
  secretFile?: string;
}

interface Collected {
  members: JsonObject;
  pem: PemParts;
}

/**
 * Builds the credentials of a profile from the vendor's files, or from a JSON file with the members
 * of a profile (protocol/admin-api.md#credentials-of-a-push-profile). Combines several files.
 * Throws `UsageError` or `CommandFailure` with a message that quotes no secret.
 */
export async function credentialsFrom(
  connector: ConnectorId,
  paths: string[],
  options: CredentialOptions,
): Promise<JsonObject> {
  const collected: Collected = { members: {}, pem: { files: [] } };
  for (const path of paths) await addFile(collected, { connector, path, options });
  const { members, pem } = collected;
  if (pem.files.length > 0) {
    if (!guideOf(connector)?.takesKeyFiles)
      throw new UsageError(
        say('{gateway} takes no key or certificate file: see `carillon profile help {connector}`', {
          gateway: gatewayName(connector),
          connector,
        }),
      );
    Object.assign(members, appleCredentials(pem, options));
  }
  const { promptedSecret, question = '' } = guideOf(connector, language()) ?? {};
  if (promptedSecret !== undefined && members[promptedSecret] === undefined)
    members[promptedSecret] = options.secretFile
      ? await readSecretLine(options.secretFile)
      : await askSecret(question, '--secret-file');
  return members;
}

async function addFile(
  { members, pem }: Collected,
  {
    connector,
    path,
    options,
  }: { connector: ConnectorId; path: string; options: CredentialOptions },
): Promise<void> {
  const file = await readCredentialFile(path);
  if (file.kind === 'json') {
    const converted = guideOf(connector)?.fromFile?.(file.document) ?? { members: file.document };
    if ('error' in converted) throw new CommandFailure(`${path}: ${recognised(converted.error)}.`);
    Object.assign(members, converted.members);
    return;
  }
  pem.files.push(path);
  const parts =
    file.kind === 'pem' ? file.parts : openPkcs12(file.content, await passwordOf(options));
  for (const name of ['certificate', 'privateKey'] as const)
    if (parts[name] !== undefined) pem[name] = `${pem[name] ?? ''}${parts[name]}`;
}

const passwordOf = ({ passwordFile }: CredentialOptions): Promise<string> =>
  passwordFile
    ? readSecretLine(passwordFile)
    : askSecret(say('Password of the .p12 file'), '--password-file');

/** Options of `carillon profile put` for Apple's files. */
interface AppleOptions {
  team?: string;
  key?: string;
  topic?: string[];
  environment?: string;
}

/**
 * Builds credentials for `apns` from Apple's files. A key alone is a .p8 key. A key with a
 * certificate is a pair. The name of the .p8 file contains the Key ID; the certificate contains the
 * topic. Throws `UsageError` for missing or swapped options, and `CommandFailure` if a certificate
 * has no matching key.
 */
function appleCredentials(pem: PemParts, options: AppleOptions): JsonObject {
  const credentials =
    pem.certificate === undefined ? fromKey(pem, options) : fromPair(pem, options);
  const { environment } = options;
  return environment === undefined ? credentials : { ...credentials, environment };
}

function fromKey(
  { privateKey = '', files }: PemParts,
  { team, key, topic }: AppleOptions,
): JsonObject {
  const [named] = files.flatMap(
    (file) => /^AuthKey_([A-Z0-9]{10})\.p8$/i.exec(basename(file))?.[1] ?? [],
  );
  if (named !== undefined && team === named)
    throw new UsageError(
      say(
        '--team is the Key ID in the name of the file: the Team ID stands under "Membership details"',
      ),
    );
  if (named !== undefined && key !== undefined && key !== named)
    throw new UsageError(
      say('--key is not the Key ID in the name of the file: leave it out, or rename the file'),
    );
  const keyId = key ?? named;
  if (team === undefined || keyId === undefined || topic === undefined) {
    const missing = [
      team === undefined ? '--team <team id>' : '',
      keyId === undefined ? '--key <key id>' : '',
      topic === undefined ? '--topic <bundle id>' : '',
    ];
    throw new UsageError(
      say('a .p8 key also needs {missing}', { missing: missing.filter(Boolean).join(', ') }),
    );
  }
  return { auth: 'token', teamId: team, keyId, privateKey, topics: topic };
}

/** Chooses the pair of certificate and key that is valid longest. The api chooses the same pair. */
function fromPair(
  { certificate = '', privateKey }: PemParts,
  { environment, topic }: AppleOptions,
): JsonObject {
  if (privateKey === undefined)
    throw new UsageError(say('the key of the certificate is missing: name its file too'));
  const [wanted, ...others] = topic ?? [];
  if (others.length > 0) throw new UsageError(say('--topic: a certificate serves one topic'));
  const keys = privateKeysIn(privateKey).map(({ key }) => key);
  const best = bestPair(certificatesIn(certificate) ?? [], keys, {
    topic: wanted,
    ...(environment === 'prod' || environment === 'dev' ? { environment } : {}),
  });
  if (!best)
    throw new CommandFailure(
      say('None of the keys belongs to a certificate: export both together.'),
    );
  const only = wanted ?? bundleIdOf(best.certificate);
  if (only === undefined)
    throw new UsageError(
      say('a certificate that names no bundle id also needs --topic <bundle id>'),
    );
  return { auth: 'certificate', certificate, privateKey, topic: only };
}

const require = createRequire(import.meta.url);

/**
 * Loads node-forge when the first file is opened, so that other commands do not spend memory on it.
 */
const load = (): typeof forge => require('node-forge');

/** All certificates of a file as one PEM text, and all keys as another. */
export interface Pkcs12Content {
  certificate: string;
  privateKey: string;
}

/**
 * Opens a PKCS#12 file (`.p12`, `.pfx`). Uses node-forge, because Keychain Access of macOS encrypts
 * with RC2 and 3DES, which Node's OpenSSL refuses. Throws `CommandFailure` if the password is wrong
 * or if the file contains no certificate or no key.
 */
function openPkcs12(content: Buffer, password: string): Pkcs12Content {
  const { pki } = load();
  const bags = readBags(content, password);
  const keys = [
    ...bagsOf(bags, pki.oids.pkcs8ShroudedKeyBag),
    ...bagsOf(bags, pki.oids.keyBag),
  ].flatMap(keyIn);
  const certificates = bagsOf(bags, pki.oids.certBag).flatMap(certificateIn);
  if (keys.length === 0 || certificates.length === 0)
    throw new CommandFailure(
      say('The .p12 file holds no certificate with its key: export both together.'),
    );
  return { certificate: certificates.join(''), privateKey: keys.join('') };
}

function readBags(content: Buffer, password: string): forge.pkcs12.Pkcs12Pfx {
  const { asn1, pkcs12 } = load();
  let file: forge.asn1.Asn1;
  try {
    file = asn1.fromDer(content.toString('binary'));
  } catch {
    throw new CommandFailure(say('The .p12 file is not a PKCS#12 file.'));
  }
  try {
    return pkcs12.pkcs12FromAsn1(file, password);
  } catch {
    throw new CommandFailure(say('The .p12 file cannot be opened with this password.'));
  }
}

const bagsOf = (file: forge.pkcs12.Pkcs12Pfx, bagType: string | undefined): forge.pkcs12.Bag[] =>
  bagType === undefined ? [] : (file.getBags({ bagType })[bagType] ?? []);

/**
 * Returns the key of a bag as PEM. node-forge parses only RSA keys; other keys are available as
 * ASN.1.
 */
function keyIn({ asn1, key }: forge.pkcs12.Bag): string[] {
  const { pki } = load();
  if (key) return [pki.privateKeyInfoToPem(pki.wrapRsaPrivateKey(pki.privateKeyToAsn1(key)))];
  return asn1 ? [pemOf('PRIVATE KEY', asn1)] : [];
}

function certificateIn({ asn1, cert }: forge.pkcs12.Bag): string[] {
  if (cert) return [load().pki.certificateToPem(cert)];
  return asn1 ? [pemOf('CERTIFICATE', asn1)] : [];
}

function pemOf(type: string, element: forge.asn1.Asn1): string {
  const { asn1, pem } = load();
  return pem.encode({ type, body: asn1.toDer(element).getBytes() });
}

const noOutput = new Writable({ write: (_chunk, _encoding, done) => done() });

/**
 * Asks for a secret in the terminal without echo. If there is no terminal, throws `UsageError` that
 * names the option to use instead.
 */
async function askSecret(question: string, option: string): Promise<string> {
  if (!process.stdin.isTTY)
    throw new UsageError(say('{option} <file> is required without a terminal', { option }));
  process.stderr.write(`${question}: `);
  const terminal = createInterface({ input: process.stdin, output: noOutput, terminal: true });
  try {
    return await terminal.question('');
  } finally {
    terminal.close();
    process.stderr.write('\n');
  }
}
