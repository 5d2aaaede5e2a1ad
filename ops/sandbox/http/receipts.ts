/** Request that delivers a receipt to the server. */
export interface ReceiptPost {
  headers: Record<string, string>;
  body: string;
}

/** Message with a URL for receipts. */
export interface ReceiptRequest {
  id: string;
  tokens: ReadonlySet<string>;
  callback: string;
  /** Callback parameter, returned with each receipt. */
  param: string;
}

/** The last messages with a URL for receipts. */
export class ReceiptLog<Message extends ReceiptRequest = ReceiptRequest> {
  readonly #capacity: number;
  #messages: Message[] = [];

  /** `capacity`: number of messages that are kept. */
  constructor(capacity = 1000) {
    this.#capacity = capacity;
  }

  add(message: Message): void {
    this.#messages.push(message);
    if (this.#messages.length > this.#capacity) this.#messages.shift();
  }

  clear(): void {
    this.#messages = [];
  }

  /**
   * Posts a receipt for each message to any of these devices, unless `receiptOf` returns null.
   * Returns the HTTP statuses.
   */
  send(
    tokens: readonly string[],
    receiptOf: (message: Message, targets: string[]) => ReceiptPost | null,
  ): Promise<number[]> {
    return Promise.all(
      this.#messages.flatMap((message) => {
        const targets = tokens.filter((token) => message.tokens.has(token));
        const receipt = targets.length === 0 ? null : receiptOf(message, targets);
        return receipt === null ? [] : [post(message.callback, receipt)];
      }),
    );
  }
}

/** Posts a receipt to the URL of the message, as a gateway does. Returns the HTTP status. */
async function post(url: string, { headers, body }: ReceiptPost): Promise<number> {
  const response = await fetch(url, { method: 'POST', headers, body });
  await response.arrayBuffer();
  return response.status;
}
