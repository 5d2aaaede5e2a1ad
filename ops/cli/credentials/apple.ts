import { basename } from 'node:path';
import { bestPair, bundleIdOf } from '../../../connectors/apns/credentials.ts';
import { certificatesIn, privateKeysIn } from '../../../connectors/contract/pem.ts';
import type { JsonObject } from '../../../shared/domain/json.ts';
import { say } from '../language.ts';
import { CommandFailure, UsageError } from '../report.ts';
import type { PemParts } from './files.ts';

/** Options of `carillon profile put` for Apple's files. */
export interface AppleOptions {
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
export function appleCredentials(pem: PemParts, options: AppleOptions): JsonObject {
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
