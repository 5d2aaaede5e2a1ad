import { guideOf } from '../../../connectors/guides.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import type { ConnectorId } from '../../../shared/domain/labels.ts';
import { gatewayName, language, recognised, say } from '../language.ts';
import { CommandFailure, UsageError } from '../report.ts';
import { type AppleOptions, appleCredentials } from './apple.ts';
import { type PemParts, readCredentialFile, readSecretLine } from './files.ts';
import { openPkcs12 } from './pkcs12.ts';
import { askSecret } from './prompt.ts';

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
