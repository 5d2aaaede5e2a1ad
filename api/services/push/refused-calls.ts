import { z } from 'zod';
import type { ReceiptCall } from '../../../connectors/contract/connector.ts';
import { openOrUndefined, sha256 } from '../../../shared/crypto.ts';
import {
  keepFailedReceipt,
  type ReceiptSource,
  type SealedCall,
} from '../../../shared/db/tables/receipts.ts';
import { sealContexts } from '../../../shared/domain/apps/seal-contexts.ts';
import type { ApiDeps } from '../deps.ts';

/**
 * Maximum number of refused calls that are stored per app, and maximum size of each, in total 64
 * MB. The oldest calls are kept.
 */
const maxCalls = 1000;
const maxBytes = 64 * 1024;

/** Headers that no signature covers. */
const droppedHeaders: ReadonlySet<string> = new Set(['authorization', 'cookie']);

const storedCall = z.object({
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  receivedAtMs: z.number().optional(),
});

/**
 * Stores a refused call of a gateway for a later try. If the call is too large or the app has too
 * many, it is only counted.
 */
export async function keepRefusedCall(
  { db, vault, metrics }: ApiDeps,
  { appId, connector }: ReceiptSource,
  call: ReceiptCall,
  refusal: { status: number; error: string },
): Promise<void> {
  const headers = Object.fromEntries(
    Object.entries(call.headers).filter(([name]) => !droppedHeaders.has(name)),
  );
  const stored = { headers, body: call.body, receivedAtMs: call.receivedAtMs };
  const bytes = Buffer.byteLength(call.body);
  const isSmall = Buffer.byteLength(JSON.stringify(stored)) <= maxBytes;
  const digest = sha256(call.body).toString('hex');
  const isKept =
    isSmall &&
    (await keepFailedReceipt(
      db,
      appId,
      {
        connector,
        digest,
        status: refusal.status,
        reason: refusal.error,
        bytes,
        call: vault.seal(stored, sealContexts.receipt(appId, connector, digest)),
      },
      maxCalls,
    ));
  metrics.refusedReceiptCalls.inc({ connector, kept: isKept ? 'yes' : 'no' });
}

/** Decrypts a stored call. Returns undefined if no key decrypts it. */
export function openRefusedCall(
  { vault }: Pick<ApiDeps, 'vault'>,
  { appId, connector }: ReceiptSource,
  { call, digest }: SealedCall,
): ReceiptCall | undefined {
  return openOrUndefined(() =>
    storedCall.parse(vault.open(call, sealContexts.receipt(appId, connector, digest))),
  );
}
