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

/** Refused calls that an app keeps, the oldest ones, and the largest that is kept: 64 MB in all. */
const mostCalls = 1000;
const mostBytes = 64 * 1024;

/** Headers that no signature needs. */
const droppedHeaders: ReadonlySet<string> = new Set(['authorization', 'cookie']);

const storedCall = z.object({
  headers: z.record(z.string(), z.string()),
  body: z.string(),
  receivedAtMs: z.number().optional(),
});

/**
 * Keeps a call of a gateway that was refused, for a later try; one that is too large or one too
 * many is counted only.
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
  const isSmall = Buffer.byteLength(JSON.stringify(stored)) <= mostBytes;
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
      mostCalls,
    ));
  metrics.refusedReceiptCalls.inc({ connector, kept: isKept ? 'yes' : 'no' });
}

/** Decrypts a kept call; undefined if no key does. */
export function openRefusedCall(
  { vault }: Pick<ApiDeps, 'vault'>,
  { appId, connector }: ReceiptSource,
  { call, digest }: SealedCall,
): ReceiptCall | undefined {
  return openOrUndefined(() =>
    storedCall.parse(vault.open(call, sealContexts.receipt(appId, connector, digest))),
  );
}
