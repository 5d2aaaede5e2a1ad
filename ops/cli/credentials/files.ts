import { createPrivateKey, X509Certificate } from 'node:crypto';
import { commonMembersIn } from '../../../connectors/contract/guide.ts';
import { pemBlocks } from '../../../connectors/contract/pem.ts';
import { guideOf } from '../../../connectors/guides.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { brandOf, type ConnectorId, profileConnectorIds } from '../../../shared/domain/labels.ts';
import { inputName, readInput, toDictionary } from '../input.ts';
import { gatewayName, language, say, words } from '../language.ts';
import { CommandFailure, type Report } from '../report.ts';
import { table } from '../table.ts';

/**
 * Certificates and keys from files. All certificates are one PEM text, and all keys are another.
 * `files` has the names of the files.
 */
export interface PemParts {
  certificate?: string;
  privateKey?: string;
  files: string[];
}

type PemTexts = Omit<PemParts, 'files'>;

/** Content of a credential file, by kind. */
export type CredentialFile =
  | { kind: 'json'; document: JsonObject }
  | { kind: 'pem'; parts: PemTexts }
  | { kind: 'pkcs12'; content: Buffer };

/** Size limit of a file. Certificates and keys have only a few kilobytes. */
const maxBytes = 1_000_000;

/** First byte of a DER file (binary certificates and keys) and of a PKCS#12 file. */
const derSequence = 0x30;

/** Reads a file, or standard input for `-`, and detects its kind. Throws `CommandFailure`. */
export async function readCredentialFile(path: string): Promise<CredentialFile> {
  const content = await readInput(path);
  const name = inputName(path);
  if (content.length > maxBytes)
    throw new CommandFailure(say('{name} is too large for credentials.', { name }));
  if (content[0] === derSequence) {
    const parts = derParts(content);
    return parts ? { kind: 'pem', parts } : { kind: 'pkcs12', content };
  }
  const text = content.toString().replace(/^\ufeff/, '');
  if (/^\s*<(\?xml|!DOCTYPE plist|plist)/.test(text))
    throw new CommandFailure(
      say('{name} is a property list (GoogleService-Info.plist?), which belongs into the app.', {
        name,
      }),
    );
  // Service account files are JSON that contains PEM.
  const isPem = !text.trimStart().startsWith('{') && text.includes('-----BEGIN ');
  return isPem
    ? { kind: 'pem', parts: pemParts(text, name) }
    : { kind: 'json', document: toDictionary(text, name) };
}

/** Reads the first line of a file that holds a password or a secret. Throws `CommandFailure`. */
export async function readSecretLine(path: string): Promise<string> {
  return (await readInput(path)).toString().split(/\r?\n/, 1)[0] ?? '';
}

/**
 * Returns the certificate (Apple's `.cer`) or key of a DER file. Returns undefined for other
 * content.
 */
function derParts(content: Buffer): PemTexts | undefined {
  try {
    return { certificate: String(new X509Certificate(content)) };
  } catch {
    // Not a certificate: a key or a PKCS#12 file.
  }
  for (const type of ['pkcs8', 'pkcs1', 'sec1'] as const) {
    try {
      const key = createPrivateKey({ key: content, format: 'der', type });
      return { privateKey: String(key.export({ type: 'pkcs8', format: 'pem' })) };
    } catch {
      // Not a key of this type.
    }
  }
  return undefined;
}

function pemParts(text: string, name: string): PemTexts {
  const blocks = pemBlocks(text);
  if (blocks.some(({ isEncrypted }) => isEncrypted))
    throw new CommandFailure(
      say('The key in {name} is encrypted: take the password off, or use the .p12 file.', { name }),
    );
  const textOf = (isWanted: (label: string) => boolean) =>
    blocks
      .filter(({ label }) => isWanted(label))
      .map(({ pem }) => pem)
      .join('');
  const certificate = textOf((label) => label.endsWith('CERTIFICATE'));
  const privateKey = textOf((label) => label.endsWith('PRIVATE KEY'));
  if (certificate === '' && privateKey === '')
    throw new CommandFailure(neither(name, blocks[0]?.label));
  return { ...(certificate && { certificate }), ...(privateKey && { privateKey }) };
}

const neither = (name: string, label: string | undefined): string =>
  label === undefined
    ? say('{name} holds neither a certificate nor a private key.', { name })
    : say('{name} holds neither a certificate nor a private key: it holds a {label}.', {
        name,
        label: label.toLowerCase().slice(0, 40),
      });

/** Lists the gateways that need credentials, with their names on the command line. */
export function describeGateways(): Report {
  const rows = profileConnectorIds.map((id) => [id, brandOf(id)]);
  const text = [
    table(words('connector', 'gateway'), rows),
    '',
    say(
      'carillon profile help <connector> shows the members of its credentials. Both names are taken everywhere.',
    ),
  ].join('\n');
  return {
    document: { results: rows.map(([connector, gateway]) => ({ connector, gateway })) },
    text,
  };
}

/**
 * Describes the credentials of a connector: members, an example, where to get them, and the
 * vendor's files.
 */
export function describeCredentials(connector: ConnectorId): Report {
  const guide = guideOf(connector, language());
  if (!guide)
    return {
      document: { connector },
      text: say('{gateway} takes no credentials.', { gateway: gatewayName(connector) }),
    };
  const { source, members, example, files } = guide;
  const lines = (all: Readonly<Record<string, string>>) =>
    table(words('member', 'meaning'), Object.entries(all));
  const text = [
    `${gatewayName(connector)} (${connector})`,
    '',
    source,
    '',
    lines(members),
    '',
    say('Example:'),
    JSON.stringify(example, null, 2),
    ...(files.length > 0
      ? ['', say('Taken as the vendor hands them out:'), ...files.map((line) => `  ${line}`)]
      : []),
    '',
    say('Every gateway also takes:'),
    lines(commonMembersIn(language())),
  ].join('\n');
  return {
    document: { connector, gateway: brandOf(connector), source, members, example, files },
    text,
  };
}
