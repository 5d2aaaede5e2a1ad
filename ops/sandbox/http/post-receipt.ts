/** What a gateway calls the server back with. */
export interface ReceiptPost {
  headers: Record<string, string>;
  body: string;
}

/** Delivers a receipt as a gateway does: a POST to the address that came with the message. Gives the HTTP status. */
export async function postReceipt(url: string, { headers, body }: ReceiptPost): Promise<number> {
  const response = await fetch(url, { method: 'POST', headers, body });
  await response.arrayBuffer();
  return response.status;
}
