import { X509Certificate } from 'node:crypto';
import { basename } from 'node:path';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { UsageError } from '../report.ts';
import type { PemParts } from './files.ts';

/** Options of `carillon profile put` for Apple's files. */
export interface AppleOptions {
  team?: string;
  key?: string;
  topic?: string[];
  environment?: string;
}

/**
 * Creates credentials of `apns` from Apple's files: a key alone is a .p8 key, a key with a certificate is a pair. The name
 * of the .p8 file contains the Key ID, the certificate contains the topic. Throws `UsageError` with the missing options.
 */
export function appleCredentials(pem: PemParts, options: AppleOptions): JsonObject {
  const credentials = pem.certificate === undefined ? fromKey(pem, options) : fromPair(pem, options);
  const { environment } = options;
  return environment === undefined ? credentials : { ...credentials, environment };
}

function fromKey({ privateKey = '', files }: PemParts, { team, key, topic }: AppleOptions): JsonObject {
  const keyId =
    key ?? files.flatMap((file) => /^AuthKey_([A-Z0-9]{10})\.p8$/i.exec(basename(file))?.[1] ?? [])[0];
  if (team === undefined || keyId === undefined || topic === undefined) {
    const missing = [
      team === undefined ? '--team <team id>' : '',
      keyId === undefined ? '--key <key id>' : '',
      topic === undefined ? '--topic <bundle id>' : '',
    ];
    throw new UsageError(`a .p8 key also needs ${missing.filter(Boolean).join(', ')}`);
  }
  return { auth: 'token', teamId: team, keyId, privateKey, topics: topic };
}

function fromPair({ certificate = '', privateKey }: PemParts, { topic }: AppleOptions): JsonObject {
  if (privateKey === undefined)
    throw new UsageError('the key of the certificate is missing: name its file too');
  const [only = bundleIdOf(certificate), ...others] = topic ?? [];
  if (others.length > 0) throw new UsageError('--topic: a certificate serves one topic');
  if (only === undefined)
    throw new UsageError('a certificate that names no bundle id also needs --topic <bundle id>');
  return { auth: 'certificate', certificate, privateKey, topic: only };
}

/** Returns the bundle id, which is the UID in the certificate's subject. */
function bundleIdOf(certificate: string): string | undefined {
  try {
    return /^UID=(.+)$/m.exec(new X509Certificate(certificate).subject)?.[1];
  } catch {
    return undefined;
  }
}
