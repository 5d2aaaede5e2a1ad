import type { RequestBatch, RequestResult, Transport } from './transport.ts';

/** One request by itself, over a transport that sends many. */
export async function sendSingleRequest(
  transport: Pick<Transport, 'sendMany'>,
  batch: RequestBatch,
): Promise<RequestResult> {
  let only: RequestResult | undefined;
  await transport.sendMany(batch, (_, reply) => {
    only = { ...reply };
    return undefined;
  });
  if (only === undefined) throw new Error('a batch of one has one reply');
  return only;
}
