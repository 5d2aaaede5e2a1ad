import type { RequestBatch, RequestResult, Transport } from './transport.ts';

/** Sends one request as a batch of one. */
export async function sendSingleRequest(
  transport: Pick<Transport, 'sendMany'>,
  batch: RequestBatch,
): Promise<RequestResult> {
  let only: RequestResult | undefined;
  await transport.sendMany(batch, (_, result) => {
    only = { ...result };
    return undefined;
  });
  if (only === undefined) throw new Error('a batch of one had no result');
  return only;
}
