import { guideOf } from '../../../connectors/registry.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { brandOf, type ConnectorId } from '../../../shared/domain/labels.ts';
import { CommandFailure, UsageError } from '../report.ts';
import { type AppleOptions, appleCredentials } from './apple.ts';
import { type PemParts, readCredentialFile, readSecretLine } from './files.ts';
import { openPkcs12 } from './pkcs12.ts';
import { askSecret } from './prompt.ts';

export interface CredentialOptions extends AppleOptions {
  passwordFile?: string;
  secretFile?: string;
}

interface Found {
  members: JsonObject;
  pem: PemParts;
}

/**
 * Makes the credentials of a profile from files as the vendors hand them out, or from a JSON file with the members of
 * a profile (protocol/admin-api.md#credentials-of-a-push-profile). Several files add up. Throws `UsageError` or `CommandFailure` with a sentence that quotes no secret.
 */
export async function credentialsFrom(
  connector: ConnectorId,
  paths: string[],
  options: CredentialOptions,
): Promise<JsonObject> {
  const found: Found = { members: {}, pem: { files: [] } };
  for (const path of paths) await addFile(found, { connector, path, options });
  const { members, pem } = found;
  if (pem.files.length > 0) {
    if (!guideOf(connector)?.takesKeyFiles)
      throw new UsageError(
        `${brandOf(connector)} takes no key or certificate file: see \`carillon profile help ${connector}\``,
      );
    Object.assign(members, appleCredentials(pem, options));
  }
  const asked = guideOf(connector)?.askedSecret;
  if (asked && members[asked.member] === undefined)
    members[asked.member] = options.secretFile
      ? await readSecretLine(options.secretFile)
      : await askSecret(asked.question, '--secret-file');
  return members;
}

async function addFile(
  { members, pem }: Found,
  { connector, path, options }: { connector: ConnectorId; path: string; options: CredentialOptions },
): Promise<void> {
  const file = await readCredentialFile(path);
  if (file.kind === 'json') {
    const own = guideOf(connector)?.fromFile?.(file.document) ?? { members: file.document };
    if ('error' in own) throw new CommandFailure(`${path}: ${own.error}.`);
    Object.assign(members, own.members);
    return;
  }
  pem.files.push(path);
  Object.assign(pem, file.kind === 'pem' ? file.parts : openPkcs12(file.content, await passwordOf(options)));
}

const passwordOf = ({ passwordFile }: CredentialOptions): Promise<string> =>
  passwordFile ? readSecretLine(passwordFile) : askSecret('Password of the .p12 file', '--password-file');
